package org.icebergwritercompat.rest

import org.apache.iceberg.exceptions.{
  CommitFailedException,
  NoSuchTableException,
  ValidationException
}
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.scalatest.funsuite.AnyFunSuite

import java.io.{File, InputStream}
import java.net.http.HttpRequest.BodyPublishers
import java.net.http.{HttpClient, HttpRequest, HttpResponse}
import java.net.{Socket, URI}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import java.security.cert.{CertificateFactory, X509Certificate}
import java.security.{KeyStore, SecureRandom}
import java.util.Base64
import java.util.concurrent.{ConcurrentLinkedQueue, CountDownLatch, TimeUnit}
import javax.net.ssl.{SSLContext, TrustManagerFactory}
import scala.jdk.CollectionConverters._
import scala.util.Using

class RestServerSuite extends AnyFunSuite {

  private val token = "open sesame"

  private val logged = new ConcurrentLinkedQueue[String]

  private def settings(
      limits: RestLimits = RestLimits(),
      tls: Option[(File, File)] = None
  ): RestSettings =
    RestSettings("127.0.0.1", 0, Some(token), tls, line => { logged.add(line); () }, limits)

  private def running[T](limits: RestLimits = RestLimits())(
      body: (RestServer, InMemoryServed) => T
  ): T = {
    val served = new InMemoryServed
    Using.resource(RestServer.start(served, settings(limits)))(body(_, served))
  }

  private val client = HttpClient.newHttpClient()

  private def request(
      server: RestServer,
      method: String,
      path: String,
      body: String = "",
      authorization: String = s"Bearer $token"
  ): HttpRequest =
    HttpRequest
      .newBuilder(URI.create(server.uri + path))
      .header("Authorization", authorization)
      .method(method, if (body.isEmpty) BodyPublishers.noBody() else BodyPublishers.ofString(body))
      .build()

  private def ask(
      server: RestServer,
      method: String,
      path: String,
      body: String = "",
      authorization: String = s"Bearer $token"
  ): HttpResponse[String] = client.send(
    request(server, method, path, body, authorization),
    HttpResponse.BodyHandlers.ofString()
  )

  private val tables = "/v1/namespaces/db/tables"

  private def create(server: RestServer, name: String): HttpResponse[String] = {
    val field = """{"id":1,"name":"a","type":"int","required":false}"""
    val schema = s"""{"type":"struct","schema-id":0,"fields":[$field]}"""
    ask(server, "POST", tables, s"""{"name":"$name","schema":$schema}""")
  }

  private def property(key: String, value: String): String =
    s"""{"requirements":[],"updates":[{"action":"set-properties","updates":{"$key":"$value"}}]}"""

  private def set(server: RestServer, table: String, value: String): HttpResponse[String] =
    ask(server, "POST", s"$tables/$table", property("k", value))

  private def valueOf(server: RestServer, table: String): Option[String] =
    "\"k\":\"([^\"]*)\"".r
      .findFirstMatchIn(ask(server, "GET", s"$tables/$table").body)
      .map(_.group(1))

  /** What comes back for bytes that no client sends, until the server closes or is quiet. */
  private def raw(server: RestServer, text: String, answers: Int = 1): String =
    Using.resource(connected(server)) { socket =>
      socket.getOutputStream.write(text.getBytes(UTF_8))
      read(socket.getInputStream, answers)
    }

  private def connected(server: RestServer): Socket = {
    val socket = new Socket("127.0.0.1", URI.create(server.uri).getPort)
    socket.setSoTimeout(20000)
    socket
  }

  private def read(stream: InputStream, answers: Int): String = {
    val found = new StringBuilder
    def isDone = {
      val text = found.toString
      text.split("HTTP/1.1 ", -1).length > answers && "\"code\":\\d+}}|\"status\":\"ok\"[^}]*}".r
        .findAllIn(text)
        .size >= answers
    }
    var next = 0
    while (!isDone && next >= 0) {
      next = stream.read()
      if (next >= 0) found.append(next.toChar)
    }
    found.toString
  }

  private val health = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"

  test("a table is made, changed, listed and dropped, and each request is one line of the log") {
    running() { (server, _) =>
      assert(create(server, "t").statusCode == 200)
      assert(set(server, "t", "v").statusCode == 200)
      assert(valueOf(server, "t").contains("v"))
      assert(ask(server, "GET", tables).body.contains("\"name\":\"t\""))
      assert(ask(server, "HEAD", s"$tables/t").statusCode == 204)
      assert(ask(server, "DELETE", s"$tables/t").statusCode == 204)
      assert(ask(server, "HEAD", s"$tables/t").statusCode == 404)
      val lines = logged.asScala.toSeq.takeRight(7)
      val words = lines.map(_.split(' ').take(3).mkString(" "))
      assert(words.head == s"POST $tables 200" && words.last == s"HEAD $tables/t 404")
      assert(lines.forall(_.matches("\\w+ \\S+ \\d+ \\d+ ms.*")))
    }
  }

  test("who has no token is not read any further, and learns nothing") {
    running() { (server, _) =>
      Seq("", "Bearer", "Bearer x", token, s"Basic $token", s"Bearer $token x").foreach { wrong =>
        assert(ask(server, "GET", "/v1/namespaces", "", wrong).statusCode == 401, wrong)
      }
      assert(ask(server, "GET", "/health", "", "x").statusCode == 200)
      assert(ask(server, "GET", "/health/../v1/namespaces", "", "x").statusCode == 401)
      assert(ask(server, "GET", "/v1/namespaces").statusCode == 200)
    }
  }

  test("sizes are bounded, and the connection goes on where it can") {
    running(RestLimits(bodyBytes = 1000)) { (server, _) =>
      val long = "x" * 20000
      assert(raw(server, s"GET /$long HTTP/1.1\r\n\r\n").startsWith("HTTP/1.1 414"))
      assert(raw(server, s"GET /health HTTP/1.1\r\nA: $long\r\n\r\n").startsWith("HTTP/1.1 431"))
      assert(raw(server, "what is this\r\n\r\n").startsWith("HTTP/1.1 400"))
      val secret = s"Authorization: Bearer $token\r\n"
      val declared = s"POST $tables HTTP/1.1\r\n${secret}Content-Length: 2000\r\n\r\n${"x" * 2000}"
      val both = raw(server, declared + health, answers = 2)
      assert(both.startsWith("HTTP/1.1 413") && both.contains("HTTP/1.1 200"))
      val chunk = s"400\r\n${"x" * 1024}\r\n"
      val chunked = s"POST $tables HTTP/1.1\r\n${secret}Transfer-Encoding: chunked\r\n\r\n" +
        s"$chunk${chunk}0\r\n\r\n"
      val second = raw(server, chunked + health, answers = 2)
      assert(second.startsWith("HTTP/1.1 413") && second.contains("HTTP/1.1 200"))
      // Asked before the body is sent.
      val expecting = s"POST $tables HTTP/1.1\r\n${secret}Expect: 100-continue\r\nContent-Length: 9"
      assert(raw(server, s"$expecting\r\n\r\n{}       ").startsWith("HTTP/1.1 100"))
    }
  }

  test("requests that come at once on a connection are answered one after the other") {
    running() { (server, _) =>
      val answers = raw(
        server,
        health + "GET /nowhere HTTP/1.1\r\n" +
          s"Authorization: Bearer $token\r\n\r\n" + health,
        answers = 3
      )
      val codes = "HTTP/1.1 (\\d+)".r.findAllMatchIn(answers).map(_.group(1)).toSeq
      assert(codes == Seq("200", "404", "200"))
    }
  }

  test("who sends half a request is not waited for, and costs no thread") {
    running(RestLimits(workers = 2, patienceSeconds = 2)) { (server, _) =>
      val idle = Seq.fill(1000)(connected(server))
      idle.foreach(_.getOutputStream.write("POST /v1/namespaces HTTP/1.1\r\nContent".getBytes))
      assert(ask(server, "GET", "/v1/namespaces").statusCode == 200)
      // Closed by the server.
      assert(idle.forall(_.getInputStream.read() == -1))
      idle.foreach(_.close())
      assert(ask(server, "GET", "/v1/namespaces").statusCode == 200)
    }
  }

  private def inBackground[T](body: => T): () => T = {
    var result = Option.empty[T]
    val thread = new Thread(() => result = Some(body))
    thread.start()
    () => { thread.join(); result.get }
  }

  test("requests that change one table wait for each other in their order, others go on") {
    running(RestLimits(workers = 2)) { (server, served) =>
      Seq("a", "b").foreach(create(server, _))
      val entered = new CountDownLatch(1)
      val leave = new CountDownLatch(1)
      served.before = table =>
        if (table.name == "a") {
          entered.countDown()
          leave.await()
        }
      val first = inBackground(set(server, "a", "1"))
      entered.await()
      val line = (2 to 6).map { i =>
        val answer = inBackground(set(server, "a", i.toString))
        // In the line before the next one comes.
        Thread.sleep(100)
        answer
      }
      // There are two threads.
      assert(set(server, "b", "x").statusCode == 200)
      assert(valueOf(server, "b").contains("x"))
      leave.countDown()
      assert((first +: line).forall(_().statusCode == 200))
      assert(valueOf(server, "a").contains("6"))
    }
  }

  test("more requests than there is room for are told to come again, and nothing is done") {
    running(RestLimits(workers = 1, waiting = 1)) { (server, served) =>
      create(server, "a")
      val leave = new CountDownLatch(1)
      served.before = _ => leave.await()
      val kept = Seq("1", "2").map { i =>
        val answer = inBackground(set(server, "a", i))
        Thread.sleep(300)
        answer
      }
      val turnedAway = set(server, "a", "3")
      assert(turnedAway.statusCode == 503)
      assert(turnedAway.headers.firstValue("Retry-After").get == "1")
      leave.countDown()
      assert(kept.forall(_().statusCode == 200))
      assert(valueOf(server, "a").contains("2"))
    }
  }

  test("a server that stops answers what it has, and takes nothing else") {
    val served = new InMemoryServed
    val server = RestServer.start(served, settings())
    create(server, "a")
    val entered = new CountDownLatch(1)
    val leave = new CountDownLatch(1)
    served.before = _ => {
      entered.countDown()
      leave.await()
    }
    val last = inBackground(set(server, "a", "1"))
    entered.await()
    val stopping = inBackground(server.stop())
    while (scala.util.Try(connected(server).close()).isSuccess) Thread.sleep(20)
    leave.countDown()
    stopping()
    assert(last().statusCode == 200)
    val metadata =
      served.catalog.loadTable(org.apache.iceberg.catalog.TableIdentifier.of("db", "a"))
    assert(metadata.properties.get("k") == "1")
  }

  test("what is committed is never said not to be, and what is not is") {
    running() { (server, served) =>
      create(server, "a")
      def status(error: => Throwable, committed: Boolean): Int = {
        if (committed) served.after = _ => throw error else served.before = _ => throw error
        try set(server, "a", System.nanoTime().toString).statusCode
        finally {
          served.before = _ => ()
          served.after = _ => ()
        }
      }
      assert(status(new CommitFailedException("no"), committed = false) == 409)
      assert(status(new ValidationException("no"), committed = false) == 400)
      assert(status(new RuntimeException("disk"), committed = false) == 500)
      assert(status(new RuntimeException("/secret/place"), committed = true) == 500)
      // Committed, and then the table cannot be looked at.
      var isCommitted = false
      served.after = _ => isCommitted = true
      served.looking = _ => if (isCommitted) throw new NoSuchTableException("gone")
      val gone = set(server, "a", "last")
      assert(gone.statusCode == 500 && gone.body.contains("CommitStateUnknownException"))
      assert(!gone.body.contains("gone") && !gone.body.contains("\tat "))
      served.looking = _ => ()
      assert(valueOf(server, "a").contains("last"))
    }
  }

  test("with a certificate it speaks TLS") {
    val folder = Files.createTempDirectory("tls")
    val (certificate, key, authority) = selfSigned(folder)
    val served = new InMemoryServed
    Using.resource(RestServer.start(served, settings(tls = Some((certificate, key))))) { server =>
      assert(server.uri.startsWith("https://127.0.0.1:"))
      val trusting = HttpClient.newBuilder().sslContext(authority).build()
      val answer = trusting
        .send(request(server, "GET", "/v1/namespaces"), HttpResponse.BodyHandlers.ofString())
      assert(answer.statusCode == 200 && answer.body.contains("db"))
      intercept[java.io.IOException](ask(server, "GET", "/v1/namespaces"))
    }
    val error = intercept[IcebergWriterCompatException] {
      RestServer.start(served, settings(tls = Some((key, certificate))))
    }
    assert(error.getCondition == "ICEBERG_WRITER_COMPAT_SERVER_NOT_STARTED.TLS")
  }

  private def selfSigned(folder: Path): (File, File, SSLContext) = {
    val store = folder.resolve("store.p12")
    val keytool = Path.of(sys.props("java.home"), "bin", "keytool").toString
    val command =
      Seq(keytool, "-genkeypair", "-keyalg", "EC", "-alias", "a", "-dname", "CN=127.0.0.1") ++
        Seq("-ext", "SAN=ip:127.0.0.1", "-storepass", "secret", "-keystore", store.toString)
    assert(new ProcessBuilder(command: _*).start().waitFor(60, TimeUnit.SECONDS))
    val keys = KeyStore.getInstance("PKCS12")
    Using.resource(Files.newInputStream(store))(keys.load(_, "secret".toCharArray))
    def pem(name: String, kind: String, bytes: Array[Byte]): File = {
      val lines = Base64.getMimeEncoder(64, "\n".getBytes).encodeToString(bytes)
      val text = s"-----BEGIN $kind-----\n$lines\n-----END $kind-----\n"
      Files.writeString(folder.resolve(name), text).toFile
    }
    val certificate = keys.getCertificate("a").asInstanceOf[X509Certificate]
    val file = pem("certificate.pem", "CERTIFICATE", certificate.getEncoded)
    val key = pem("key.pem", "PRIVATE KEY", keys.getKey("a", "secret".toCharArray).getEncoded)
    val trusted = KeyStore.getInstance(KeyStore.getDefaultType)
    trusted.load(null, null)
    val read = Using.resource(Files.newInputStream(file.toPath)) {
      CertificateFactory.getInstance("X.509").generateCertificate(_)
    }
    trusted.setCertificateEntry("a", read)
    val trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm)
    trust.init(trusted)
    val context = SSLContext.getInstance("TLS")
    context.init(null, trust.getTrustManagers, new SecureRandom)
    (file, key, context)
  }

  test("places are the folders and what is below them") {
    val places = new Places(Seq("file:/warehouse/t", "s3a://bucket/x/"))
    Seq("file:///warehouse/t/data/a.parquet", "/warehouse/t", "s3a://bucket/x/y").foreach { inside =>
      assert(places.has(inside), inside)
    }
    Seq(
      "file:/warehouse/t2/a",
      "file:/warehouse/t/../t2/a",
      "file:/warehouse",
      "s3a://other/x/y",
      "hdfs:/warehouse/t/a",
      "file:/../warehouse/t",
      "",
      "::"
    ).foreach(outside => assert(!places.has(outside), outside))
  }
}
