// A turn as a web response, for programs that have their own HTTP server.
import { isEvent, OxbowError, type TurnStream } from '@oxbow/core'
import { callable, checkFields, countOrNone, type Fields, isObject, oneOf, text } from '@oxbow/core/internal'
import type { AgUiFrame as Frame } from '../ag-ui/encoder/frames.ts'
import { type UiChunk, uiMessages } from './ui-messages.ts'

export interface ResponseOptions {
  /**
   * `ag-ui` (default): AG-UI events as server-sent events. `ui-messages`: the UI message stream of the AI SDK, for
   * `useChat`.
   */
  readonly format?: 'ag-ui' | 'ui-messages'
  /** The AG-UI thread id. Default: the session id. */
  readonly threadId?: string
  /** Send only events after this number, for a turn that continues after a decision. See `Submitted.after`. */
  readonly after?: number
  /** Logs an error that the reader must not see, and returns a reference to it. Default: to standard error. */
  readonly report?: (error: unknown) => string
}

const OPTIONS: Fields<ResponseOptions> = {
  format: oneOf('ag-ui', 'ui-messages'),
  threadId: text,
  after: countOrNone,
  report: callable,
}

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
}

/**
 * Streams a turn to a browser. If the reader leaves, the turn continues; pass the request's signal to `stream()` to
 * stop it.
 *
 * @returns a Response with status 200. A failure of the turn is part of the stream, in words that end users may see.
 * @throws OxbowError `invalid_option` for what is not the stream of a turn, or for an unknown option
 * @example
 * const stream = engine.session({ user }).stream(text, { signal: request.signal })
 * return toResponse(stream, { format: 'ui-messages' })
 */
export function toResponse(stream: TurnStream, options: ResponseOptions = {}): Response {
  if (!isTurnStream(stream))
    throw new OxbowError(
      'invalid_option',
      'toResponse(): the first argument must be the stream of a turn, for example ' +
        'engine.session({ user }).stream(text), or session.attach(turnId) for a turn that is open.',
    )
  checkFields(options, OPTIONS, (what) => new OxbowError('invalid_option', `toResponse(): ${what}`))
  const { format = 'ag-ui' } = options
  const frames = framesOf(stream, options)
  const text = format === 'ag-ui' ? frames : asUiMessages(frames, stream.turnId)
  const encoder = new TextEncoder()
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await text.next()
      if (done) controller.close()
      else controller.enqueue(encoder.encode(value))
    },
    async cancel() {
      await text.return(undefined)
    },
  })
  const version = format === 'ui-messages' && { 'x-vercel-ai-ui-message-stream': 'v1' }
  return new Response(body, { headers: { ...HEADERS, ...version } })
}

/** AG-UI frames in their wire format. */
async function* framesOf(
  stream: TurnStream,
  { threadId = stream.session.session, after = 0, report = toStandardError }: ResponseOptions,
): AsyncGenerator<string, void> {
  // Imported on demand: a program that streams nothing need not load them.
  const [{ runEncoder }, { failureOfError }] = await Promise.all([
    import('../ag-ui/encoder/encoder.ts'),
    import('../failures.ts'),
  ])
  const encoder = runEncoder({ threadId, runId: stream.turnId, onRepair: () => {}, report })
  yield encoder.start()
  let follows = false
  try {
    for await (const item of stream) {
      // An input that joined a turn is answered by that turn.
      if (!follows && 'turnId' in item) encoder.follows(item.turnId)
      follows ||= 'turnId' in item
      if (isEvent(item) && item.seq <= after) encoder.seen(item)
      else {
        const text = encoder.encode(item)
        if (text !== '') yield text
      }
    }
    yield encoder.pause(stream.session)
  } catch (error) {
    yield encoder.fail(failureOfError(error, report))
  }
}

async function* asUiMessages(frames: AsyncIterable<string>, turnId: string): AsyncGenerator<string, void> {
  const translate = uiMessages(turnId)
  for await (const text of frames) {
    const chunks = framesIn(text).flatMap(translate)
    if (chunks.length > 0) yield chunks.map(line).join('')
  }
  yield 'data: [DONE]\n\n'
}

const line = (chunk: UiChunk): string => `data: ${JSON.stringify(chunk)}\n\n`

const framesIn = (text: string): Frame[] =>
  text.split('\n').flatMap((it) => (it.startsWith('data: ') ? [JSON.parse(it.slice(6)) as Frame] : []))

const isTurnStream = (value: unknown): value is TurnStream =>
  isObject(value) && typeof value.turnId === 'string' && Symbol.asyncIterator in value

function toStandardError(error: unknown): string {
  const reference = crypto.randomUUID()
  console.error(`Oxbow, reference ${reference}:`, error)
  return reference
}
