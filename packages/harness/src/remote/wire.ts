// The client side of the Agent Protocol: requests, answers, and the event stream.
import { OxbowError } from '@oxbow/core'

export type Headers = Readonly<Record<string, string>>

/** A call of the remote agent that is waiting for a decision. */
export interface RemoteCall {
  readonly toolCallId: string
  readonly tool: string
  readonly arguments: unknown
}

/** An event as received. Unknown types are passed on too. */
export interface RemoteEvent {
  readonly seq: number
  readonly type: string
  readonly text?: string
  readonly toolCallId?: string
  readonly toolName?: string
  readonly toolInput?: string
  readonly status?: string
  readonly [field: string]: unknown
}

export interface RemoteTask {
  readonly status: string
  readonly result: string | undefined
  readonly error: string | undefined
  readonly waiting: readonly RemoteCall[]
}

export interface RemoteSubmission {
  readonly task_id: string
  readonly agent_id?: string
  readonly input: string
  readonly context: Readonly<Record<string, unknown>>
}

export interface Decision {
  readonly toolCallId: string
  readonly approved: boolean
  readonly reason?: string
}

/** The time limit of every request, and of silence on the stream. */
const REQUEST_MS = 30_000
const SILENCE_MS = 60_000
/** The longest event; tool results may be long. */
const MAX_EVENT_LENGTH = 16 * 1024 * 1024

export interface RemoteTasks {
  /**
   * Submitting the same task again does not create a second one. @throws OxbowError `remote_refused`,
   * `remote_unreachable`
   */
  submit(submission: RemoteSubmission): Promise<void>
  /** Undefined for an unknown task. */
  task(id: string): Promise<RemoteTask | undefined>
  /** Resolves when the task has ended or waits for a decision, after some seconds at the latest. */
  wait(id: string): Promise<void>
  /** False when the task is not (or no longer) waiting for this. */
  resume(id: string, decisions: readonly Decision[]): Promise<boolean>
  cancel(id: string): Promise<void>
  /**
   * Events after a number, until the server ends the stream.
   * @throws OxbowError `remote_no_stream` where there are none
   */
  events(id: string, after: number): AsyncGenerator<RemoteEvent, void>
}

export function remoteTasks(name: string, url: string, headers: Headers, signal: AbortSignal): RemoteTasks {
  const base = url.replace(/\/+$/, '')
  const at = (id: string, rest = ''): string => `/tasks/${encodeURIComponent(id)}${rest}`

  async function request(method: string, path: string, more: { body?: object; signal?: AbortSignal } = {}) {
    const { body } = more
    try {
      return await fetch(`${base}${path}`, {
        method,
        redirect: 'error',
        signal: more.signal ?? AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS)]),
        headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
    } catch (error) {
      signal.throwIfAborted()
      throw unreachable(name, error)
    }
  }

  async function accepted(answer: Response): Promise<Response> {
    if (answer.ok) return answer
    const said = (await answer.text().catch(() => '')).slice(0, 500)
    if (answer.status >= 500 || answer.status === 429) throw unreachable(name, `HTTP ${answer.status} ${said}`)
    throw new OxbowError(
      'remote_refused',
      `The remote agent ${name} refused the request: HTTP ${answer.status} ${said}`,
    )
  }

  async function json(answer: Response): Promise<Record<string, unknown>> {
    try {
      return (await answer.json()) as Record<string, unknown>
    } catch (error) {
      signal.throwIfAborted()
      throw unreachable(name, error)
    }
  }

  return {
    async submit(submission) {
      const answer = await request('POST', '/tasks', { body: submission })
      // It has already ended: an earlier attempt succeeded.
      if (answer.status !== 409) await accepted(answer)
    },
    async task(id) {
      const answer = await request('GET', at(id))
      if (answer.status === 404) return undefined
      return taskOf(await json(await accepted(answer)))
    },
    async wait(id) {
      await accepted(await request('GET', at(id, '/wait?timeout_seconds=20')))
    },
    async resume(id, decisions) {
      const answer = await request('POST', at(id, '/resume'), { body: { decisions } })
      if (answer.status === 409) return false
      await accepted(answer)
      return true
    },
    // The signal that aborts everything else is often the reason to cancel.
    async cancel(id) {
      await accepted(await request('POST', at(id, '/cancel'), { signal: AbortSignal.timeout(REQUEST_MS) }))
    },
    async *events(id, after) {
      const left = new AbortController()
      const silence = setTimeout(() => left.abort(), SILENCE_MS)
      try {
        const query = after > 0 ? `?from_seq=${after}` : ''
        const answer = await request('GET', at(id, `/events${query}`), {
          signal: AbortSignal.any([signal, left.signal]),
        })
        if (answer.status === 404 || answer.status === 405)
          throw new OxbowError('remote_no_stream', `The remote agent ${name} does not stream events.`)
        await accepted(answer)
        const received: RemoteEvent[] = []
        const { createParser } = await import('eventsource-parser')
        const parser = createParser({
          maxBufferSize: MAX_EVENT_LENGTH,
          onError({ type }) {
            // Later events can no longer be separated.
            if (type === 'max-buffer-size-exceeded')
              throw new OxbowError('remote_failed', `The remote agent ${name} sent an event that is too long.`)
          },
          onEvent({ id: number, data }) {
            const event = eventOf(data, number)
            if (event !== undefined) received.push(event)
          },
        })
        const decoder = new TextDecoder()
        for await (const bytes of answer.body ?? []) {
          silence.refresh()
          parser.feed(decoder.decode(bytes, { stream: true }))
          yield* received.splice(0)
        }
      } catch (error) {
        signal.throwIfAborted()
        throw error instanceof OxbowError ? error : unreachable(name, error)
      } finally {
        clearTimeout(silence)
        left.abort()
      }
    },
  }
}

const unreachable = (name: string, cause: unknown): OxbowError =>
  new OxbowError('remote_unreachable', `The remote agent ${name} is unreachable or the connection broke.`, {
    retryable: true,
    cause,
  })

function eventOf(data: string, id: string | undefined): RemoteEvent | undefined {
  const parsed = parse(data)
  if (typeof parsed !== 'object' || parsed === null || !('type' in parsed) || typeof parsed.type !== 'string')
    return undefined
  const seq = Number('seq' in parsed ? parsed.seq : id)
  return Number.isSafeInteger(seq) ? { ...parsed, type: parsed.type, seq } : undefined
}

function taskOf(body: Record<string, unknown>): RemoteTask {
  const { pending_confirms: waiting } = body
  return {
    status: String(body.status).toLowerCase(),
    result: typeof body.result === 'string' ? body.result : undefined,
    error: typeof body.error === 'string' ? body.error : undefined,
    waiting: Array.isArray(waiting) ? waiting.flatMap(callOf) : [],
  }
}

function callOf(given: Record<string, unknown> | null): RemoteCall[] {
  const toolCallId = given?.toolCallId ?? given?.tool_call_id
  if (typeof toolCallId !== 'string') return []
  const input = given?.toolInputJson ?? given?.tool_input_json
  const tool = String(given?.toolName ?? given?.tool_name ?? 'a tool')
  return [{ toolCallId, tool, arguments: typeof input === 'string' ? (parse(input) ?? input) : {} }]
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
