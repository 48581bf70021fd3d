"""A Hive metastore on a free port of 127.0.0.1, with its database in memory; prints the port.

It is of the jars of PySpark. Hive's own `main` would listen on every address of the machine.
"""

from __future__ import annotations

import os
import sys

from pyspark.java_gateway import launch_gateway

warehouse = sys.argv[1]

os.environ["PYSPARK_SUBMIT_ARGS"] = (
    "--driver-memory 512m --driver-java-options -Dderby.stream.error.file=/dev/null pyspark-shell"
)
gateway = launch_gateway()
jvm = gateway.jvm
conf = jvm.org.apache.hadoop.hive.conf.HiveConf()
for key, value in {
    "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
    "datanucleus.schema.autoCreateAll": "true",
    "hive.metastore.schema.verification": "false",
    "hive.metastore.disallow.incompatible.col.type.changes": "false",
    "hive.metastore.warehouse.dir": warehouse,
}.items():
    conf.set(key, value)
metastore = jvm.org.apache.hadoop.hive.metastore
handler = metastore.HiveMetaStore.HMSHandler("metastore", conf, False)
asked = metastore.RetryingHMSHandler.getProxy(conf, handler, True)
thrift = jvm.org.apache.thrift
socket = thrift.transport.TServerSocket(jvm.java.net.InetSocketAddress("127.0.0.1", 0))
arguments = (
    thrift.server.TThreadPoolServer.Args(socket)
    .processor(metastore.TSetIpAddressProcessor(asked))
    .transportFactory(thrift.transport.TTransportFactory())
    .protocolFactory(thrift.protocol.TBinaryProtocol.Factory())
    .minWorkerThreads(2)
    .maxWorkerThreads(8)
)
server = thrift.server.TThreadPoolServer(arguments)
print(socket.getServerSocket().getLocalPort(), flush=True)
server.serve()
