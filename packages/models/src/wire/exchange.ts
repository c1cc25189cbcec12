// One request and its answer over HTTP, from the bytes to the frames.
import type { ModelReply } from '@oxbow/core'
import {
  bodyError,
  type ErrorContext,
  httpError,
  networkError,
  redirectError,
  wordsError,
} from '../failures/provider-errors.ts'
import { cutError, type Limits, limitError, queuedError, startAnswer } from './answer.ts'
import type { ReplyAssembler } from './assembler.ts'
import type { Timeouts } from './clock.ts'
import { inSlices } from './slices.ts'
import { sseReader } from './sse.ts'
import { type Receiver, type ResponseHead, type Send, sendOverHttp, type Transfer } from './transport.ts'

export interface Endpoint {
  readonly context: ErrorContext
  readonly url: string
  /** In lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly timeouts: Timeouts
  readonly limits: Required<Limits>
  /** Default: over node:http. */
  readonly send?: Send | undefined
}

/** Reads one kind of body. */
interface Sink {
  data(bytes: Uint8Array): void
  end(): void
}

/** Sends `body` and feeds the answer to the assembler. Rejects with a `ModelError`, at once when `signal` aborts. */
export function exchange(
  endpoint: Endpoint,
  body: string,
  assembler: ReplyAssembler,
  signal: AbortSignal,
): Promise<ModelReply> {
  const { context, limits, send = sendOverHttp } = endpoint
  let transfer: Transfer | undefined
  let head: ResponseHead | undefined
  /** How long to wait for the end of the body. */
  let endOfBody: NodeJS.Timeout | undefined
  let bodyEnded = false
  let framed = false
  const errorBody = bodyParts(MAX_ERROR_BYTES)
  const answer = startAnswer({
    context,
    timeouts: endpoint.timeouts,
    limits,
    assembler,
    signal,
    abort: () => {
      clearTimeout(endOfBody)
      transfer?.abort()
    },
    onSettled: () => {
      clearTimeout(endOfBody)
      if (transfer && head && !bodyEnded) endOfBody = setTimeout(transfer.abort, DRAIN_MS).unref()
    },
    onTimeout: (code, limitMs) => {
      if (head && !isOk(head)) return httpError(context, head, errorBody.text())
      return code === 'total_timeout' && head && !framed ? queuedError(context, limitMs) : undefined
    },
  })
  const { clock, succeed, fail, ended, partial } = answer

  const frame = (value: object) => {
    framed = true
    answer.frame(value)
  }
  const frames = (value: object) => {
    for (const each of Array.isArray(value) ? value : [value]) if (isObject(each) && !answer.settled) frame(each)
  }

  const events = (): Sink => {
    /** The answer has ended, but perhaps not its body. */
    let whole = false
    /**
     * Lines outside any event, and data that is not JSON: usually signs of life, sometimes an error message.
     */
    let words = ''
    const end = () => {
      whole = true
      // The connection can be reused once the body has ended, which is at once: the next request need not open another.
      endOfBody = setTimeout(succeed, END_OF_BODY_MS)
    }
    const take = (data: string, event: string) => {
      // Data after the end does not belong to this answer.
      if (answer.settled || whole) return
      const first = firstCharacter(data)
      if (first === '[' && data.trim() === '[DONE]') {
        return assembler.complete || assembler.mayEnd ? end() : ended(() => wordsOrCut())
      }
      const value = first === '{' || first === '[' ? parsed(data) : undefined
      if (value === undefined) return first === '{' ? takeBroken(data) : takeWords(data, event)
      if (event === 'error' && !Array.isArray(value)) {
        framed = true
        return answer.fault({ type: 'error', error: (value as { readonly error?: unknown }).error ?? value })
      }
      frames(value)
      if (assembler.ended) end()
    }
    const takeBroken = (data: string) => {
      // In a stream that was cut, a broken last event is not another error.
      if (bodyEnded) return
      const hint = 'A frame of its stream was broken JSON. Try again.'
      fail(bodyError(context, data, hint, { retryable: true, ...partial() }))
    }
    const takeWords = (text: string, event: string) => {
      if (event === 'error') return answer.fault({ type: 'error', error: parsed(text) ?? text.trim() })
      if (words.length < MAX_WORDS) words += `${text.slice(0, MAX_WORDS)}\n`
    }
    const takeStray = (line: string) => {
      if (answer.settled || whole) return
      const [, error] = /^error\s*:\s*(\S.*)$/i.exec(line) ?? []
      takeWords(error ?? line, error === undefined ? '' : 'error')
    }
    const wordsOrCut = () =>
      words.trim() === '' || assembler.started ? cutError(context, partial()) : wordsError(context, words)
    const reader = sseReader(take, takeStray)
    return {
      data(bytes) {
        // Before the first frame, comments mean that the request is queued; later they mean nothing.
        if (!framed) clock.progress()
        reader.push(bytes)
      },
      end() {
        reader.end()
        if (whole) succeed()
        else ended(wordsOrCut)
      },
    }
  }

  /** The body is one document and not an event stream. */
  const document = (): Sink => {
    const parts = bodyParts(Number.POSITIVE_INFINITY)
    return {
      data(bytes) {
        clock.progress()
        parts.add(bytes)
      },
      end() {
        const text = parts.text()
        const value = parsed(text)
        if (value === undefined) {
          const isPage = text.trimStart().startsWith('<')
          const hint = isPage ? 'It sent a web page: check the base URL.' : 'It sent broken JSON. Try again.'
          return fail(bodyError(context, text, hint, { retryable: !isPage }))
        }
        frames(value)
        if (assembler.complete || assembler.started) succeed()
        else fail(bodyError(context, text, 'Check the base URL.'))
      },
    }
  }

  /**
   * Some servers send white space as a sign of life, even before a document: the first other character decides the
   * kind.
   */
  const undecided = (): Sink => ({
    data(bytes) {
      clock.progress()
      const first = firstCharacter(Buffer.from(bytes).toString())
      if (first === '') return
      sink = first === '{' || first === '[' || first === '<' ? document() : events()
      sink.data(bytes)
    },
    end: () => fail(cutError(context, {})),
  })

  const failed = (it: ResponseHead): Sink => {
    const end = () => fail(httpError(context, it, errorBody.text()))
    return {
      data(bytes) {
        if (!errorBody.add(bytes)) end()
      },
      end,
    }
  }

  let sink: Sink | undefined
  const pieces = inSlices((bytes) => {
    if (!answer.settled) sink?.data(bytes)
  })
  let total = 0
  const receiver: Receiver = {
    onHead(it) {
      head = it
      if (it.status === 0 || (it.status >= 300 && it.status < 400)) {
        return fail(redirectError(context, it.status, it.header('location') ?? null))
      }
      sink = isOk(it) ? undecided() : failed(it)
    },
    onData(bytes) {
      if (answer.settled) return
      if (total === 0 && isOk(head!)) clock.firstByte()
      // Counted after decompression: a few kilobytes can expand to gigabytes.
      total += bytes.length
      if (total <= limits.answerBytes) return pieces.push(bytes)
      pieces.after(() => ended(() => limitError(context, limits, 'answerBytes', partial())))
      transfer?.abort()
    },
    onEnd() {
      pieces.after(() => {
        bodyEnded = true
        if (answer.settled) clearTimeout(endOfBody)
        else sink?.end()
      })
    },
    onError(error) {
      pieces.after(() => {
        bodyEnded = true
        clearTimeout(endOfBody)
        if (head && !isOk(head)) fail(httpError(context, head, errorBody.text()))
        else ended(() => (head ? cutError(context, partial(), error) : networkError(context, error)))
      })
    },
  }

  if (answer.settled) return answer.reply
  transfer = send({ url: endpoint.url, headers: endpoint.headers, body }, receiver)
  return answer.reply
}

/** How long the end of a body may take after the last event. */
const END_OF_BODY_MS = 25
/** How long the rest of a body is read after the answer has settled, so that the connection can be reused. */
const DRAIN_MS = 1_000
/** The limit for the body of an error. */
const MAX_ERROR_BYTES = 64 * 1024
const MAX_WORDS = 2_000

const isOk = ({ status }: ResponseHead): boolean => status >= 200 && status < 300

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

/** The first character after a byte order mark and white space; event streams never begin with a bracket. */
function firstCharacter(text: string): string {
  const first = text.charAt(0)
  return first === '{' ? first : text.trimStart().charAt(0)
}

/** Undefined unless the text is a JSON object or list. */
function parsed(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function bodyParts(most: number) {
  const parts: Uint8Array[] = []
  let bytes = 0
  return {
    /** False when there is enough. */
    add(part: Uint8Array): boolean {
      parts.push(part)
      bytes += part.length
      return bytes <= most
    },
    text: () => Buffer.concat(parts).subarray(0, Math.min(bytes, most)).toString(),
  }
}
