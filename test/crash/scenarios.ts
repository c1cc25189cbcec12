// Turns that are killed at every point. Each tool writes what it really did into a log that the engine knows nothing
// of.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type AgentDefinition,
  type Backend,
  type Capability,
  externalTool,
  type FaultPoint,
  type JsonSchema,
  needsApproval,
  type Tool,
  tool,
} from '@oxbow/core'
import { compaction } from '@oxbow/harness/compaction'
import type { Reply, ScriptedRequest } from '@oxbow/testing'

export interface Scenario {
  readonly tools: (world: World) => readonly Tool[]
  readonly allow?: readonly string[]
  readonly deny?: readonly string[]
  readonly output?: JsonSchema
  readonly capabilities?: (backend: Backend) => readonly Capability[]
  /** The model's answer by the number of answers that the request holds, or by what else is in it. */
  readonly replies: readonly Reply[] | ((request: ScriptedRequest) => Reply | undefined)
  /** Tools whose outcome may honestly be unknown after a kill in the middle of them. */
  readonly mayBeUnknown?: readonly string[]
}

/** The outside world: a file that only grows. */
export interface World {
  readonly faultPoint: FaultPoint | undefined
  act(effect: string): void
  done(effect: string): boolean
}

export function world(directory: string, faultPoint: FaultPoint | undefined): World {
  const file = join(directory, 'effects.log')
  return {
    faultPoint,
    act(effect) {
      faultPoint?.('effect.before')
      appendFileSync(file, `${effect}\n`)
      faultPoint?.('effect.after')
    },
    done: (effect) => effects(directory).includes(effect),
  }
}

export function effects(directory: string): string[] {
  const file = join(directory, 'effects.log')
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []
}

const word: JsonSchema = { type: 'object', properties: { word: { type: 'string' } }, required: ['word'] }

const read = tool({
  name: 'read',
  description: 'Reads a word.',
  effects: ['read'],
  input: word,
  run: ({ word: it }) => `read ${String(it)}`,
})

const page = tool({
  name: 'page',
  description: 'Reads a page.',
  effects: ['read'],
  input: word,
  run: ({ word: it }) => `page ${String(it)}: ${'long '.repeat(400)}`,
})

/** Reads one page after the other, by the last one that it was shown; notes are written when they are asked for. */
function pageByPage({ messages }: ScriptedRequest): Reply | undefined {
  if (String(messages[0]?.content).startsWith('You keep the notes'))
    return { text: '{"add":[{"kind":"fact","text":"Pages are long.","where":"page a"}]}' }
  const last = messages.findLast((it) => it.role === 'tool')
  const read = /^page (\w)/.exec(String(last?.content))?.[1]
  if (read === 'e') return { text: 'I have read all pages.' }
  const next = read === undefined ? 'a' : String.fromCharCode(read.charCodeAt(0) + 1)
  return { calls: [{ name: 'page', arguments: { word: next } }] }
}

const tooLong: Reply = {
  status: 400,
  body: { error: { code: 'context_length_exceeded', message: 'maximum context length is 8192 tokens' } },
}

export const scenarios: Record<string, Scenario> = {
  'parallel reads over three steps': {
    tools: () => [read],
    replies: [
      { calls: ['a', 'b', 'c', 'd', 'e'].map((it) => ({ name: 'read', arguments: { word: it } })) },
      { thinking: 'one more', calls: [{ name: 'read', arguments: { word: 'f' } }] },
      { text: 'I have read six words.' },
    ],
  },
  'a write that cannot be reconciled': {
    tools: (it) => [read, send(it, {})],
    allow: ['send'],
    mayBeUnknown: ['send'],
    replies: [
      {
        text: 'First I look.',
        calls: [
          { name: 'read', arguments: { word: 'a' } },
          { name: 'send', arguments: { word: 'letter' } },
          { name: 'read', arguments: { word: 'b' } },
        ],
      },
      { text: 'The letter is sent.' },
    ],
  },
  'a write that can be asked about': {
    tools: (it) => [
      send(it, {
        reconcile: async (operationId) =>
          it.done(`send letter ${operationId}`) ? { status: 'done', result: 'sent letter' } : { status: 'not_done' },
      }),
    ],
    allow: ['send'],
    replies: [{ calls: [{ name: 'send', arguments: { word: 'letter' } }] }, { text: 'The letter is sent.' }],
  },
  'an idempotent write': {
    tools: (it) => [
      tool({
        name: 'put',
        description: 'Stores a word under its operation id.',
        effects: ['write'],
        idempotent: true,
        input: word,
        run: ({ word: value }, { operationId }) => {
          const effect = `put ${String(value)} ${operationId}`
          if (!it.done(effect)) it.act(effect)
          return `put ${String(value)}`
        },
      }),
    ],
    allow: ['put'],
    replies: [
      {
        calls: [
          { name: 'put', arguments: { word: 'x' } },
          { name: 'put', arguments: { word: 'y' } },
        ],
      },
      { text: 'Stored.' },
    ],
  },
  'a tool that asks while it works': {
    tools: (it) => [
      tool({
        name: 'order',
        description: 'Orders what a person approves.',
        effects: ['write'],
        input: word,
        reconcile: async (operationId) =>
          it.done(`order ${operationId}`) ? { status: 'done', result: 'ordered' } : { status: 'not_done' },
        run: ({ word: what }, { operationId, decision }) => {
          if (decision === undefined) return needsApproval({ arguments: { what }, reason: 'It costs money.' })
          it.act(`order ${operationId}`)
          return 'ordered'
        },
      }),
    ],
    allow: ['order'],
    replies: [{ calls: [{ name: 'order', arguments: { word: 'paper' } }] }, { text: 'Ordered.' }],
  },
  'a durable tool with steps, a sleep and a signal': {
    tools: (it) => [
      tool({
        name: 'ship',
        description: 'Ships an order.',
        effects: ['write'],
        durable: true,
        input: word,
        async run({ word: order }, { step, sleep, waitFor }) {
          const once = (name: string) =>
            step(
              name,
              ({ operationId }) => {
                it.act(`${name} ${operationId}`)
                return name
              },
              {
                reconcile: async (operationId) =>
                  it.done(`${name} ${operationId}`) ? { status: 'done', result: name } : { status: 'not_done' },
              },
            )
          const reserved = await once('reserve')
          await sleep(5)
          const billed = await step(
            'bill',
            ({ operationId }) => {
              if (!it.done(`bill ${operationId}`)) it.act(`bill ${operationId}`)
              return 'bill'
            },
            { idempotent: true },
          )
          const when = await waitFor('go')
          return [order, reserved, billed, when, await once('send')].join(' ')
        },
      }),
    ],
    allow: ['ship'],
    replies: [{ calls: [{ name: 'ship', arguments: { word: 'paper' } }] }, { text: 'Shipped.' }],
  },
  'an external tool and a refused call': {
    tools: (it) => [
      read,
      externalTool({ name: 'ask_client', description: 'Runs in the client.', effects: ['read'], input: word }),
      send(it, {}),
    ],
    deny: ['send'],
    replies: [
      {
        calls: [
          { name: 'ask_client', arguments: { word: 'colour' } },
          { name: 'send', arguments: { word: 'forbidden' } },
          { name: 'read', arguments: { word: 'a' } },
          { name: 'ask_client', arguments: { word: 'size' } },
        ],
      },
      { text: 'The client said blue.' },
    ],
  },
  'a structured answer that needs a second attempt': {
    tools: () => [read],
    output: { type: 'object', properties: { total: { type: 'integer' } }, required: ['total'] },
    replies: [
      { calls: [{ name: 'read', arguments: { word: 'a' } }] },
      { text: '{"total":"many"}' },
      { text: '{"total":6}' },
    ],
  },
  'a conversation that is compacted between its steps': {
    tools: () => [page],
    capabilities: ({ journal }) => [compaction({ journal, trigger: 6, keep: 2 })],
    replies: pageByPage,
  },
  'a conversation that the provider refuses as too long': {
    tools: () => [page],
    capabilities: ({ journal }) => [compaction({ journal })],
    replies: (request) => (JSON.stringify(request.messages).length > 7_000 ? tooLong : pageByPage(request)),
  },
  'broken arguments until the tool is given up': {
    tools: () => [read],
    replies: [
      { calls: [{ name: 'read', arguments: '{"word":' }] },
      {
        calls: [
          { name: 'read', arguments: '[1]' },
          { name: 'nothing', arguments: {} },
        ],
      },
      { calls: [{ name: 'read', arguments: '{"word":{}}' }] },
      { text: 'I could not read.' },
    ],
  },
}

function send(it: World, { reconcile }: Pick<Parameters<typeof tool>[0], 'reconcile'>): Tool {
  return tool({
    name: 'send',
    description: 'Sends a letter.',
    effects: ['write'],
    input: word,
    ...(reconcile && { reconcile }),
    run: ({ word: what }, { operationId }) => {
      it.act(`send ${String(what)} ${operationId}`)
      return `sent ${String(what)}`
    },
  })
}

/** The same approval always gets the same decision, however often it is requested. */
export function replyTo(scenario: Scenario, request: ScriptedRequest): Reply | undefined {
  if (typeof scenario.replies === 'function') return scenario.replies(request)
  const answers = request.messages.filter((it) => it.role === 'assistant').length
  return scenario.replies[answers]
}

export const definition = (
  scenario: Scenario,
  it: World,
  backend: Backend,
): Pick<AgentDefinition, 'tools' | 'capabilities' | 'allow' | 'deny'> => ({
  tools: scenario.tools(it),
  capabilities: scenario.capabilities?.(backend) ?? [],
  allow: scenario.allow ?? [],
  deny: scenario.deny ?? [],
})
