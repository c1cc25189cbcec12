// CopilotKit in front of our service: its own client asks its own runtime over HTTP, and that asks POST
// /api/chat/stream.
import { fork } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { tool } from '@oxbow/core'
import { gate, type Reply } from '@oxbow/testing'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { rigs } from '../../packages/server/src/test.fixture.ts'
import type { Command, Outcome, Setup } from './copilotkit/protocol.ts'

const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
const installed = existsSync(path('./copilotkit/node_modules'))
const missing = 'CopilotKit is not installed: npm ci --prefix test/clients/copilotkit'

beforeEach(({ skip }) => {
  if (process.env.CI !== undefined && !installed) throw new Error(missing)
  skip(!installed, missing)
})

interface CopilotKit {
  /** Loads a page that shows the thread. */
  open(threadId: string): Promise<Outcome>
  say(text: string): Promise<Outcome>
  stop(): void
}

/** A runtime and a page in their own process, which ends with the test. */
async function startCopilotKit(setup: Setup): Promise<CopilotKit> {
  const child = fork(path('./copilotkit/program.ts'), [JSON.stringify(setup)], {
    execArgv: [],
    silent: true,
    env: { PATH: process.env.PATH ?? '', COPILOTKIT_TELEMETRY_DISABLED: 'true' },
  })
  let output = ''
  for (const stream of [child.stdout!, child.stderr!])
    stream.on('data', (it: Buffer) => {
      output += it.toString()
    })
  const exited = new Promise<never>((_resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`CopilotKit ended with ${code}:\n${output}`)))
  })
  exited.catch(() => {})
  onTestFinished(async () => {
    child.kill()
    await exited.catch(() => {})
  })
  const next = <T>(): Promise<T> =>
    Promise.race([new Promise<T>((resolve) => child.once('message', (it) => resolve(it as T))), exited])
  const ask = (command: Command): Promise<Outcome> => {
    child.send(command)
    return next()
  }
  await next()
  return {
    open: (threadId) => ask({ type: 'open', threadId }),
    say: (text) => ask({ type: 'say', text }),
    stop: () => void child.send({ type: 'stop' } satisfies Command),
  }
}

const types = (outcome: Outcome): string[] => outcome.events.map((it) => it.type)
const roles = (messages: readonly { role: string }[]): string[] => messages.map((it) => it.role)

const look = tool({
  name: 'look',
  description: 'Looks at something.',
  effects: ['read'],
  input: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] },
  run: ({ at }) => `seen ${at}`,
})

describe.each<Setup['mode']>(['multi-route', 'single-route'])('Y5: behind a %s runtime of CopilotKit', (mode) => {
  const rig = rigs()
  async function start(replies: Reply[]) {
    const service = await rig({ agent: { tools: [look] }, replies, overrides: { 'server.disconnectGrace': '0ms' } })
    const copilotKit = await startCopilotKit({ agentUrl: `${service.url}/api/chat/stream`, mode })
    return { copilotKit, model: service.model }
  }

  test('a run with a tool call and text comes through whole and ends', async () => {
    const { copilotKit } = await start([
      { calls: [{ name: 'look', arguments: { at: 'the sky' } }] },
      { text: 'The sky is blue.' },
    ])
    await copilotKit.open('thread')
    const run = await copilotKit.say('What do you see?')
    expect(run.errors).toEqual([])
    expect(run.messages).toMatchObject([
      { role: 'user', content: 'What do you see?' },
      { role: 'assistant', toolCalls: [{ function: { name: 'look', arguments: '{"at":"the sky"}' } }] },
      { role: 'tool', content: 'seen the sky' },
      { role: 'assistant', content: 'The sky is blue.' },
    ])
    expect(types(run)[0]).toBe('RUN_STARTED')
    expect(types(run).at(-1)).toBe('RUN_FINISHED')
    expect(types(run).filter((it) => it === 'TEXT_MESSAGE_CONTENT')).toHaveLength(4)
  })

  test('a thread continues, even in a reloaded page, and the model gets every message once', async () => {
    const { copilotKit, model } = await start([{ text: 'It is blue.' }, { text: 'Yes, still.' }, { text: 'It is.' }])
    await copilotKit.open('thread')
    await copilotKit.say('What colour is the sky?')
    const second = await copilotKit.say('Still?')
    expect(second.errors).toEqual([])
    expect(second.messages.at(-1)).toMatchObject({ role: 'assistant', content: 'Yes, still.' })

    const reloaded = await copilotKit.open('thread')
    expect(reloaded.errors).toEqual([])
    expect(roles(reloaded.messages)).toEqual(['user', 'assistant', 'user', 'assistant'])
    const third = await copilotKit.say('Is it?')
    expect(third.errors).toEqual([])
    expect(third.messages.at(-1)).toMatchObject({ role: 'assistant', content: 'It is.' })

    expect(roles(model.requests[2]!.messages)).toEqual(['system', 'user', 'assistant', 'user', 'assistant', 'user'])
    model.assertDrained()
  })

  // The service still refuses earlier messages without `content`, and an assistant's that only calls tools has none.
  test('a thread continues after a turn that called a tool', async () => {
    const { copilotKit, model } = await start([
      { calls: [{ name: 'look', arguments: { at: 'the sky' } }] },
      { text: 'The sky is blue.' },
      { text: 'Yes, still.' },
    ])
    await copilotKit.open('thread')
    await copilotKit.say('What do you see?')
    const second = await copilotKit.say('Still?')
    expect(second.errors).toEqual([])
    expect(second.messages.at(-1)).toMatchObject({ role: 'assistant', content: 'Yes, still.' })
    expect(roles(model.requests[2]!.messages)).toEqual(['system', 'user', 'assistant', 'tool', 'assistant', 'user'])
  })

  test('a model that refuses is an error of the run, and the thread can be used again', async () => {
    const { copilotKit } = await start([
      { status: 401, body: { error: { message: 'no such key' } } },
      { text: 'Here I am.' },
    ])
    await copilotKit.open('thread')
    const refused = await copilotKit.say('Are you there?')
    expect(types(refused).at(-1)).toBe('RUN_ERROR')
    expect(refused.errors).toEqual([
      { code: 'agent_run_error_event', message: expect.stringContaining('The language model could not answer') },
    ])
    expect(JSON.stringify(refused)).not.toContain('no such key')

    const again = await copilotKit.say('And now?')
    expect(again.errors).toEqual([])
    expect(again.messages.at(-1)).toMatchObject({ role: 'assistant', content: 'Here I am.' })
  })

  test('the stop button stops the model, and the thread can be used again', async () => {
    const { copilotKit, model } = await start([
      { text: 'one two three', hold: { atChunk: 2, gate: gate() } },
      { text: 'Good.' },
    ])
    await copilotKit.open('thread')
    const running = copilotKit.say('Count.')
    const request = await model.nextRequest()
    copilotKit.stop()
    await request.waitForAbort()
    const stopped = await running
    expect(stopped.errors).toEqual([])

    const again = await copilotKit.say('Thanks.')
    expect(again.messages.at(-1)).toMatchObject({ role: 'assistant', content: 'Good.' })
  })
})
