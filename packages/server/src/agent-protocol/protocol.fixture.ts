// A client of the protocol as a third party would write it: only paths, bodies and frames.
import { tool } from '@oxbow/core'
import { json, type Rig } from '../test.fixture.ts'

// biome-ignore lint/suspicious/noExplicitAny: the assertions check what came over the wire.
type Anything = any

export interface SseMessage {
  readonly id: number
  readonly event: string
  readonly data: Anything
}

/** The messages of an event stream, without comments. */
export const messagesOf = (text: string): SseMessage[] =>
  text.split('\n\n').flatMap((part) => {
    const field = (name: string) =>
      part
        .split('\n')
        .find((line) => line.startsWith(`${name}: `))
        ?.slice(name.length + 2)
    const data = field('data')
    return data === undefined ? [] : [{ id: Number(field('id')), event: field('event')!, data: JSON.parse(data) }]
  })

export interface EventReader {
  readonly messages: SseMessage[]
  /** Reads until a message satisfies the condition. */
  until(condition: (message: SseMessage) => boolean): Promise<SseMessage>
  rest(): Promise<SseMessage[]>
  leave(): Promise<void>
}

export function readMessages(answer: Response): EventReader {
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader()
  const messages: SseMessage[] = []
  let buffer = ''
  let next = 0
  const more = async (): Promise<boolean> => {
    const { done, value } = await reader.read()
    if (done) return false
    const parts = (buffer + value).split('\n\n')
    buffer = parts.pop()!
    messages.push(...messagesOf(parts.join('\n\n')))
    return true
  }
  return {
    messages,
    async until(condition) {
      for (;;) {
        for (; next < messages.length; next++) if (condition(messages[next]!)) return messages[next++]!
        if (!(await more())) throw new Error(`the stream ended: ${messages.map((it) => it.event).join(' ')}`)
      }
    },
    async rest() {
      while (await more());
      return messages
    },
    leave: () => reader.cancel(),
  }
}

export function protocol({ get, post }: Pick<Rig, 'get' | 'post'>) {
  return {
    submit: (task_id: string, more: object = {}) => post('/tasks', { task_id, input: 'Go.', ...more }),
    task: (id: string): Promise<Anything> => json(get(`/tasks/${id}`)),
    wait: (id: string): Promise<Anything> => json(get(`/tasks/${id}/wait?timeout_seconds=30`)),
    cancel: (id: string) => post(`/tasks/${id}/cancel`, undefined, { body: null, headers: {} }),
    resume: (id: string, decisions: unknown) => post(`/tasks/${id}/resume`, { decisions }),
    events: (id: string, query = '', init?: RequestInit) => get(`/tasks/${id}/events${query}`, init),
  }
}

/** A tool that needs an approval and records its calls. */
export function deployTool() {
  const deployed: unknown[] = []
  const deploy = tool({
    name: 'deploy',
    description: 'Deploys a version.',
    effects: ['write'],
    input: { type: 'object', properties: { version: { type: 'string' } }, required: ['version'] },
    run(input, { attributes, principal }) {
      deployed.push({ ...(input as object), attributes, user: principal.user })
      return 'deployed'
    },
  })
  return { deploy, deployed }
}
