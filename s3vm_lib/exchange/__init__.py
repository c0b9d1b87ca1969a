"""Files of other programs, and models for them: `readers` and `export`."""

from s3vm_lib.exchange.export import register_converters as register_converters
from s3vm_lib.exchange.export import to_sklearn as to_sklearn
from s3vm_lib.exchange.export import write_libsvm_model as write_libsvm_model
from s3vm_lib.exchange.readers import Table as Table
from s3vm_lib.exchange.readers import read_arff as read_arff
from s3vm_lib.exchange.readers import read_keel as read_keel
from s3vm_lib.exchange.readers import read_pin as read_pin
from s3vm_lib.exchange.readers import read_ssl_book as read_ssl_book
from s3vm_lib.exchange.readers import read_svmlight as read_svmlight
from s3vm_lib.exchange.readers import read_svmlin as read_svmlin
from s3vm_lib.exchange.readers import read_table as read_table
from s3vm_lib.exchange.readers import read_universvm as read_universvm
from s3vm_lib.exchange.readers import write_svmlight as write_svmlight

__all__ = [name for name in dir() if not name.startswith("_")]
