package org.icebergwritercompat.rest

import io.netty.bootstrap.ServerBootstrap
import io.netty.channel.group.DefaultChannelGroup
import io.netty.channel.socket.SocketChannel
import io.netty.channel.{Channel, ChannelInitializer, ChannelOption}
import io.netty.handler.codec.http.{HttpRequest, HttpServerCodec}
import io.netty.handler.flow.FlowControlHandler
import io.netty.handler.ssl.{SslContext, SslContextBuilder, SslProvider}
import io.netty.util.concurrent.GlobalEventExecutor
import org.apache.hadoop.util.ShutdownHookManager
import org.apache.iceberg.catalog.TableIdentifier
import org.apache.spark.network.util.{IOMode, NettyUtils}
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.iceberg.IcebergLibrary
import org.icebergwritercompat.model.BuildInfo

import java.net.{InetAddress, InetSocketAddress}
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.Locale
import java.util.concurrent.TimeUnit
import java.util.concurrent.TimeUnit.SECONDS
import scala.util.Try
import scala.util.control.NonFatal

/**
 * An Iceberg REST catalog over HTTP.
 *
 * The HTTP is Netty's, which Spark has: connections without a request and clients that are slow
 * cost no thread, and every size is bounded before a request is read.
 */
final class RestServer private (served: Served, settings: RestSettings) extends AutoCloseable {

  private val routes = new CatalogRoutes(served, BuildInfo.version)

  private val waiting = new Waiting(settings.limits)

  private val channels = new DefaultChannelGroup(GlobalEventExecutor.INSTANCE)

  @volatile private var isStopping = false

  private val address = InetAddress.getByName(settings.host)

  private val isOpen = settings.token.isEmpty

  private val secret = settings.token.map(digest)

  private val tls = settings.tls.map { case (certificate, key) =>
    try
      SslContextBuilder.forServer(certificate, key).sslProvider(SslProvider.JDK).build()
    catch {
      case NonFatal(e) =>
        throw IcebergWriterCompatException.serverNotStarted(
          "TLS",
          Map(
            "certificate" -> certificate.toString,
            "key" -> key.toString,
            "cause" -> String.valueOf(e.getMessage)
          ),
          e
        )
    }
  }

  private val loops = NettyUtils.createEventLoop(IOMode.NIO, RestServer.loopThreads, "iceberg-rest")

  private val listening: Channel =
    try bound()
    catch {
      case NonFatal(e) =>
        loops.shutdownGracefully(0, 1, SECONDS)
        throw IcebergWriterCompatException.serverNotStarted(
          "ADDRESS",
          Map(
            "host" -> settings.host,
            "port" -> settings.port.toString,
            "cause" -> String.valueOf(e.getMessage)
          ),
          e
        )
    }

  /** Where clients find it. */
  val uri: String = {
    val host = if (settings.host.contains(':')) s"[${settings.host}]" else settings.host
    val port = listening.localAddress.asInstanceOf[InetSocketAddress].getPort
    s"${if (tls.isEmpty) "http" else "https"}://$host:$port"
  }

  private def bound(): Channel = {
    val bootstrap = new ServerBootstrap()
    bootstrap.group(loops)
    bootstrap.channel(NettyUtils.getServerChannelClass(IOMode.NIO))
    bootstrap.option[Integer](ChannelOption.SO_BACKLOG, 512)
    bootstrap.option[java.lang.Boolean](ChannelOption.SO_REUSEADDR, true)
    // A connection is read from only while a request of it is awaited.
    bootstrap.childOption[java.lang.Boolean](ChannelOption.AUTO_READ, false)
    bootstrap.childOption[java.lang.Boolean](ChannelOption.TCP_NODELAY, true)
    bootstrap.childHandler(new ChannelInitializer[SocketChannel] {
      override def initChannel(channel: SocketChannel): Unit =
        if (channels.size >= settings.limits.connections) { channel.close(); () }
        else {
          channels.add(channel)
          tls.foreach((context: SslContext) =>
            channel.pipeline.addLast(context.newHandler(channel.alloc))
          )
          val limits = settings.limits
          channel.pipeline
            .addLast(new HttpServerCodec(limits.lineBytes, limits.headerBytes, 64 << 10))
            .addLast(new FlowControlHandler)
            .addLast(
              new RestConnection(
                limits,
                refusal,
                (what, no) => log(s"$what ${no.status} 0 ms"),
                answer
              )
            )
          ()
        }
    })
    bootstrap.bind(new InetSocketAddress(address, settings.port)).syncUninterruptibly().channel
  }

  /** Why a request is not read any further than its headers. */
  private def refusal(request: HttpRequest): Option[RestAnswer] = {
    val headers = request.headers
    val path = request.uri.takeWhile(c => c != '?' && c != '#')
    if (isStopping)
      Some(RestAnswer.error(503, "ServiceUnavailableException", "The server is stopping"))
    // A page of a browser could else send requests in the name of whoever looks at it.
    else if (headers.contains("Origin"))
      Some(RestAnswer.error(403, "ForbiddenException", "Browsers are not answered"))
    else if (isOpen && !RestServer.isHere(headers.get("Host")))
      Some(
        RestAnswer.error(
          403,
          "ForbiddenException",
          "Without a token the server answers requests to this machine alone, by the name localhost " +
            "or its address. Start it with a token"
        )
      )
    else if (path == "/health") None
    else
      secret.filterNot(isGiven(headers.get("Authorization"), _)).map { _ =>
        RestAnswer
          .error(401, "NotAuthorizedException", "The bearer token is missing or wrong")
          .copy(headers = Map("WWW-Authenticate" -> "Bearer"))
      }
  }

  // By digests of one length: the time tells nothing about the token.
  private def isGiven(header: String, secret: Array[Byte]): Boolean =
    Option(header)
      .filter(_.regionMatches(true, 0, RestServer.Bearer, 0, RestServer.Bearer.length))
      .exists { text =>
        MessageDigest.isEqual(digest(text.substring(RestServer.Bearer.length).trim), secret)
      }

  private def digest(text: String): Array[Byte] =
    MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8))

  /** Answers a request, on any thread; `send` may be given what to do when the answer is sent. */
  private def answer(request: RestRequest, rawPath: String, sent: RestConnection.Sending): Unit = {
    val started = System.nanoTime()
    val isIn = waiting.enter()
    def finish(prepared: Option[Prepared], answer: RestAnswer): Unit = {
      log(request, rawPath, prepared, answer, started)
      sent(answer, () => if (isIn) waiting.leave())
    }
    if (!isIn) {
      val busy = RestAnswer.error(503, "ServiceUnavailableException", "Too many requests wait")
      finish(None, busy.copy(headers = Map("Retry-After" -> "1")))
    } else
      waiting.run { () =>
        val progress = new Progress
        guarded(progress, None)(routes.prepared(request)) match {
          case Left(error)     => finish(None, error)
          case Right(prepared) =>
            def work(): Unit = {
              val result = guarded(progress, prepared.table) {
                Progress.of(progress)(served.within(prepared.key)(prepared.run()))
              }
              finish(Some(prepared), result.merge)
            }
            prepared.table.filter(_ => prepared.line) match {
              case Some(table) =>
                waiting.inLine(table.toString.toLowerCase(Locale.ROOT))(() => work())
              case None => work()
            }
        }
      }
  }

  private def guarded[T](progress: Progress, table: Option[TableIdentifier])(
      body: => T
  ): Either[RestAnswer, T] =
    try Right(IcebergLibrary.needed(body))
    catch {
      case e: Throwable =>
        def unreadable(why: Throwable) =
          table.flatMap(of => Try(served.whyUnreadable(of, why)).toOption.flatten)
        Left(RestErrors.answer(e, progress.stage, unreadable))
    }

  private def log(
      request: RestRequest,
      rawPath: String,
      prepared: Option[Prepared],
      answer: RestAnswer,
      started: Long
  ): Unit = {
    val took = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - started)
    val about = prepared.flatMap(_.table).fold("")(table => s" $table") +
      answer.version.fold("")(version => s" version $version")
    log(s"${request.method} $rawPath ${answer.status} $took ms$about")
  }

  private def log(line: String): Unit =
    settings.log(line.map(c => if (c.isControl) '?' else c).take(1000))

  // Before Spark's own, which would end the session under the commits that are being made.
  private val atExit: Thread = new Thread(() => close(), "iceberg-rest-stop")

  ShutdownHookManager
    .get()
    .addShutdownHook(atExit, RestServer.hookPriority, settings.limits.stopSeconds.toLong, SECONDS)

  /** Takes no more requests, answers those that it has, and ends. */
  def stop(): Unit = close()

  override def close(): Unit = synchronized {
    if (!isStopping) {
      isStopping = true
      listening.close().syncUninterruptibly()
      if (!ShutdownHookManager.get().isShutdownInProgress)
        ShutdownHookManager.get().removeShutdownHook(atExit)
      if (!waiting.end()) settings.log("Stopped before all requests were answered")
      channels.close().awaitUninterruptibly()
      loops.shutdownGracefully(0, 5, SECONDS).awaitUninterruptibly()
      ()
    }
  }
}

object RestServer {

  private val Bearer = "Bearer "

  private val loopThreads = 2

  private val hookPriority = 100

  /** Starts a server; fails if it could be reached from elsewhere without a token. */
  def start(served: Served, settings: RestSettings): RestServer = {
    IcebergLibrary.require()
    if (settings.token.isEmpty && !isLoopback(settings.host))
      throw IcebergWriterCompatException
        .serverNotStarted("NO_TOKEN", Map("host" -> settings.host))
    new RestServer(served, settings)
  }

  private def isLoopback(host: String): Boolean =
    try InetAddress.getAllByName(host).forall(_.isLoopbackAddress)
    catch { case NonFatal(_) => false }

  // A name that somebody else may resolve to this machine is not one of them.
  private def isHere(header: String): Boolean = Option(header).exists { host =>
    val name =
      if (host.startsWith("[")) host.takeWhile(_ != ']').drop(1) else host.takeWhile(_ != ':')
    name.equalsIgnoreCase("localhost") || name == "::1" || name.matches("127(\\.\\d{1,3}){3}")
  }
}
