package org.icebergwritercompat.rest

import io.netty.buffer.Unpooled
import io.netty.channel.{
  ChannelFuture,
  ChannelFutureListener,
  ChannelHandlerContext,
  ChannelInboundHandlerAdapter
}
import io.netty.handler.codec.TooLongFrameException
import io.netty.handler.codec.http._
import io.netty.util.ReferenceCountUtil
import io.netty.util.concurrent.ScheduledFuture

import java.io.ByteArrayOutputStream
import java.net.URLDecoder
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.TimeUnit
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

/**
 * One connection: a request is read, answered, and only then the next one is read.
 *
 * @param refusal
 *   why a request is not looked at, by its headers; what else it has is read and thrown away
 * @param note
 *   told of a request that is not looked at
 * @param answer
 *   gets the request, its path as it came, and how to send the answer
 */
private[rest] final class RestConnection(
    limits: RestLimits,
    refusal: HttpRequest => Option[RestAnswer],
    note: (String, RestAnswer) => Unit,
    answer: (RestRequest, String, RestConnection.Sending) => Unit
) extends ChannelInboundHandlerAdapter {

  private var patience: ScheduledFuture[_] = _

  // What is being read. All of it is touched on the thread of the connection alone.
  private var head: HttpRequest = _
  private var refused: Option[RestAnswer] = None
  private var body: ByteArrayOutputStream = _
  private var thrownAway = 0L

  override def channelActive(context: ChannelHandlerContext): Unit = awaitNext(context)

  override def channelInactive(context: ChannelHandlerContext): Unit = {
    calm()
    body = null
  }

  private def awaitNext(context: ChannelHandlerContext): Unit = {
    hurry(context)
    context.read()
    ()
  }

  // A client that takes too long for its request, or for its answer, is not waited for.
  private def hurry(context: ChannelHandlerContext): Unit = {
    calm()
    val close: Runnable = () => { context.close(); () }
    patience = context.executor.schedule(close, limits.patienceSeconds.toLong, TimeUnit.SECONDS)
  }

  private def calm(): Unit = if (patience != null) {
    patience.cancel(false)
    patience = null
  }

  override def channelRead(context: ChannelHandlerContext, message: Any): Unit =
    try {
      message match {
        case part: HttpObject if part.decoderResult.isFailure =>
          turnAway(context, "unreadable", malformed(part.decoderResult.cause), isLast = true)
        case _ =>
          message match {
            case request: HttpRequest => begin(context, request)
            case _                    => ()
          }
          message match {
            case content: HttpContent if head != null => add(content)
            case _                                    => ()
          }
          message match {
            case _: LastHttpContent if head != null      => complete(context)
            case _ if thrownAway > 4L * limits.bodyBytes =>
              context.close()
            case _ => context.read()
          }
      }
      ()
    } finally { ReferenceCountUtil.release(message); () }

  private def begin(context: ChannelHandlerContext, request: HttpRequest): Unit = {
    head = request
    body = new ByteArrayOutputStream
    thrownAway = 0
    refused = refusal(request).orElse {
      Option.when(HttpUtil.getContentLength(request, 0L) > limits.bodyBytes)(tooLarge)
    }
    if (HttpUtil.is100ContinueExpected(request) && refused.isEmpty) {
      val status = HttpResponseStatus.CONTINUE
      context.writeAndFlush(
        new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, status, Unpooled.EMPTY_BUFFER)
      )
      ()
    }
  }

  private def add(content: HttpContent): Unit = {
    val bytes = content.content
    if (refused.isEmpty && body.size + bytes.readableBytes > limits.bodyBytes) {
      refused = Some(tooLarge)
      body = null
    }
    if (refused.isEmpty) bytes.readBytes(body, bytes.readableBytes)
    else thrownAway += bytes.readableBytes
  }

  private def tooLarge: RestAnswer = RestAnswer.error(
    413,
    "BadRequestException",
    s"The body of a request has at most ${limits.bodyBytes} bytes"
  )

  private def malformed(cause: Throwable): RestAnswer = cause match {
    case _: TooLongHttpLineException =>
      RestAnswer.error(414, "BadRequestException", s"A path has at most ${limits.lineBytes} bytes")
    case _: TooLongFrameException =>
      RestAnswer.error(
        431,
        "BadRequestException",
        s"Headers have at most ${limits.headerBytes} bytes"
      )
    case _ => RestAnswer.error(400, "BadRequestException", "This is no request of HTTP")
  }

  private def complete(context: ChannelHandlerContext): Unit = {
    calm()
    val request = head
    val isLast = !HttpUtil.isKeepAlive(request)
    val content = Option(body).fold("")(_.toString(UTF_8))
    val early = refused
    body = null
    val rawPath = request.uri.takeWhile(_ != '?')
    val what = s"${request.method} $rawPath"
    early match {
      case Some(no) => turnAway(context, what, no, isLast)
      case None     =>
        understood(request, content) match {
          case None =>
            val no = RestAnswer.error(400, "BadRequestException", "The path cannot be decoded")
            turnAway(context, what, no, isLast)
          case Some(whole) =>
            answer(whole, rawPath, (ready, sent) => send(context, ready, isLast, sent))
        }
    }
  }

  private def turnAway(
      context: ChannelHandlerContext,
      what: String,
      no: RestAnswer,
      isLast: Boolean
  ): Unit = {
    note(what, no)
    send(context, no, isLast, () => ())
  }

  private def understood(request: HttpRequest, content: String): Option[RestRequest] =
    try {
      val uri = new QueryStringDecoder(request.uri)
      // A plus is a plus in a path.
      val path = uri.rawPath.split('/').toSeq.filter(_.nonEmpty).map { part =>
        URLDecoder.decode(part.replace("+", "%2B"), UTF_8)
      }
      val query = uri.parameters.asScala.map { case (key, values) => key -> values.get(0) }.toMap
      val headers = request.headers
      val header = (name: String) => Option(headers.get(name))
      Some(RestRequest(request.method.name, path, query, header, content))
    } catch { case NonFatal(_) => None }

  /** Sends an answer from any thread, and goes on with the next request. */
  private def send(
      context: ChannelHandlerContext,
      ready: RestAnswer,
      isLast: Boolean,
      sent: () => Unit
  ): Unit =
    // The thread of the connection ends with the server.
    try
      context.executor.execute { () =>
        val isHead = head != null && head.method == HttpMethod.HEAD
        head = null
        refused = None
        hurry(context)
        val after: ChannelFutureListener = (written: ChannelFuture) => {
          sent()
          if (isLast || !written.isSuccess) context.close()
          else awaitNext(context)
          ()
        }
        context.writeAndFlush(response(ready, isLast, isHead)).addListener(after)
        ()
      }
    catch { case NonFatal(_) => sent() }

  private def response(ready: RestAnswer, isLast: Boolean, isHead: Boolean): FullHttpResponse = {
    val bytes = ready.body.filterNot(_ => isHead).fold(Array.emptyByteArray)(_.getBytes(UTF_8))
    val status = HttpResponseStatus.valueOf(ready.status)
    val response =
      new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, status, Unpooled.wrappedBuffer(bytes))
    val headers = response.headers
    ready.headers.foreach { case (name, value) => headers.set(name, value) }
    if (ready.body.isDefined) headers.set(HttpHeaderNames.CONTENT_TYPE, "application/json")
    if (ready.status != 204 && ready.status != 304)
      headers.setInt(HttpHeaderNames.CONTENT_LENGTH, bytes.length)
    if (isLast) headers.set(HttpHeaderNames.CONNECTION, HttpHeaderValues.CLOSE)
    response
  }

  // A client that goes away, or a handshake that fails.
  override def exceptionCaught(context: ChannelHandlerContext, cause: Throwable): Unit = {
    context.close()
    ()
  }
}

private[rest] object RestConnection {

  /** Sends an answer, and then does something, even if the client is gone. */
  type Sending = (RestAnswer, () => Unit) => Unit
}
