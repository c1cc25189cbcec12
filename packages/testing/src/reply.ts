// The reply of a scripted model. Plain data, so that it can be sent to a server in another process.
import type { Gate } from './gate.ts'

/** A closed gate, or a number of milliseconds. */
export type Hold = Gate | number

export interface ScriptedCall {
  readonly name: string
  /** An object is serialised; a string is sent unchanged, even when it is not JSON. Default `{}`. */
  readonly arguments?: unknown
  readonly id?: string
}

/** Token counts with the names of chat completions. The other formats send the same counts under their own names. */
export interface WireUsage {
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly total_tokens?: number
  readonly [detail: string]: unknown
}

/**
 * One reply. Content comes in the order thinking, text, calls. Faults count chunks: one chunk is one SSE frame, and
 * the first is number 0. Holding at chunk 2 means that two chunks were sent and the third was not.
 */
export interface Reply {
  readonly thinking?: string
  /**
   * The provider's proof of `thinking`: the signature in Anthropic's format, the encrypted reasoning in the responses
   * format. Default: one that names the request.
   */
  readonly signature?: string
  readonly text?: string
  readonly calls?: readonly ScriptedCall[]
  /** How many fragments `text` is split into. Default: one per word. */
  readonly chunks?: number
  /** Default: 10 prompt tokens and one completion token per fragment. `null`: the server reports no usage. */
  readonly usage?: WireUsage | null
  /**
   * The name in chat completions or the format's own. Default `stop`, or `tool_calls` when there are calls.
   * `null`: the frame with the reason is omitted.
   */
  readonly finishReason?: string | null
  /** False omits the last frame: `[DONE]`, `message_stop` or `response.completed`. */
  readonly done?: boolean

  /** The raw body, in place of everything above: an SSE recording, or pieces that are written one by one. */
  readonly raw?: string | Uint8Array | readonly Uint8Array[]

  /** A status other than 200, or custom headers. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** Sent in place of a stream; objects as JSON. */
  readonly body?: unknown

  readonly beforeHeaders?: Hold
  readonly beforeFirstByte?: Hold
  readonly betweenChunks?: number
  readonly hold?: { readonly atChunk: number; readonly gate: Hold }
  /** The socket is destroyed after this many chunks. */
  readonly cutAfterChunks?: number
  /** The socket is destroyed after this many bytes of the body. */
  readonly cutAfterBytes?: number
  /** Sends nothing after this many chunks; the connection stays open until the client leaves or `release()`. */
  readonly silentAfterChunks?: number
  /** A frame that is not JSON is sent before this chunk. */
  readonly garbageAt?: number
  /** This chunk is sent twice. */
  readonly duplicateAt?: number
  /** This many keep-alive comments are sent before each chunk. */
  readonly keepAlives?: number
  /** After the content, in place of the end: the format's error frame with this error object. */
  readonly error?: unknown
}

/** Decides by the request; `undefined` means that there is no reply. */
export type ReplyFunction<Request> = (request: Request) => Reply | undefined | Promise<Reply | undefined>

/** A list is used up in order; `always` answers every request; a function decides per request. */
export type Script<Request> =
  | readonly (Reply | ReplyFunction<Request>)[]
  | { readonly always: Reply }
  | ReplyFunction<Request>
