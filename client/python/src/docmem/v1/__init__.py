"""Messages and enums of the wire contract docmem.v1; proto/docmem/v1 explains every field."""

from docmem.v1.adapter_pb2 import *
from docmem.v1.admin_pb2 import *
from docmem.v1.collection_pb2 import *
from docmem.v1.common_pb2 import *
from docmem.v1.document_pb2 import *
from docmem.v1.errors_pb2 import *
from docmem.v1.query_pb2 import *
from docmem.v1.training_pb2 import *
