// Two services, each with the other's agent as a tool, in processes that are killed and started again.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Gate, gate, type Reply, type ScriptedModel, scriptedModel, until } from '@oxbow/testing'
import { expect, onTestFinished, test } from 'vitest'
import type { Life } from './service.ts'

const main = fileURLToPath(new URL('service.ts', import.meta.url))

interface Running {
  readonly url: string
  kill(signal?: NodeJS.Signals): Promise<void>
  start(): Promise<void>
}

/** `left` and `right`, each with its own store, and one model for both. */
async function two(scripts: Record<'left' | 'right', readonly Reply[]>) {
  const directory = mkdtempSync(join(tmpdir(), 'oxbow-remote-'))
  const model = await scriptedModel({ scripts })
  const ports = [await freePort(), await freePort()] as const
  const left = service({ name: 'left', directory, port: ports[0], peerPort: ports[1], modelUrl: model.url })
  const right = service({ name: 'right', directory, port: ports[1], peerPort: ports[0], modelUrl: model.url })
  onTestFinished(async () => {
    await Promise.all([left.kill(), right.kill()])
    await model.close()
    rmSync(directory, { recursive: true })
  })
  await Promise.all([left.start(), right.start()])
  const effects = (name: 'left' | 'right') =>
    readFileSync(join(directory, `${name}.effects`), 'utf8')
      .trimEnd()
      .split('\n')
  return { left, right, model, effects }
}

function service(life: Life): Running {
  let child: ChildProcess | undefined
  const url = `http://127.0.0.1:${life.port}`
  return {
    url,
    async start() {
      child = spawn(process.execPath, ['--conditions=oxbow-source', main, JSON.stringify(life)], {
        stdio: ['ignore', 'ignore', 'inherit'],
      })
      await until(async () => (await fetch(`${url}/readyz`)).ok, { deadlineMs: 15_000 })
    },
    async kill(signal = 'SIGKILL') {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
      child.kill(signal)
      await new Promise((resolve) => child!.once('exit', resolve))
    },
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}

async function post(url: string, body: object): Promise<Record<string, unknown>> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return (await answer.json()) as Record<string, unknown>
}

type Snapshot = Record<string, unknown> & { pending_confirms: { toolCallId: string }[] }
const wait = async ({ url }: Running, id: string): Promise<Snapshot> =>
  (await fetch(`${url}/tasks/${id}/wait?timeout_seconds=30`)).json() as Promise<Snapshot>

const ask = (task: string): Reply => ({ calls: [{ name: 'peer', arguments: { task } }] })
const work: Reply = { calls: [{ name: 'work' }] }
const held = (text: string, at: Gate): Reply => ({ text, hold: { atChunk: 1, gate: at } })
const requestsOf = (model: ScriptedModel, name: string) => model.requests.filter((it) => it.model === name)

test('P10: each delegates to the other, and the answers come back', { timeout: 60_000 }, async () => {
  const { left, right, model } = await two({
    left: [ask('a'), { text: 'left has an answer' }, { text: 'from left' }],
    right: [{ text: 'from right' }, ask('b'), { text: 'right has an answer' }],
  })
  await post(`${left.url}/tasks`, { task_id: 't1', input: 'Go.' })
  expect(await wait(left, 't1')).toMatchObject({ status: 'success', result: 'left has an answer' })
  await post(`${right.url}/tasks`, { task_id: 't2', input: 'Go.' })
  expect(await wait(right, 't2')).toMatchObject({ status: 'success', result: 'right has an answer' })
  model.assertDrained()
})

test('P10: a task is not passed back and forth forever', { timeout: 60_000 }, async () => {
  const passOn: Reply[] = [
    ...Array.from({ length: 3 }, () => ask('You do it.')),
    ...Array.from({ length: 3 }, () => ({ text: 'Done.' })),
  ]
  const { left, model } = await two({ left: passOn, right: passOn })
  await post(`${left.url}/tasks`, { task_id: 't1', input: 'Go.' })
  expect(await wait(left, 't1')).toMatchObject({ status: 'success', result: 'Done.' })
  expect(JSON.stringify(model.requests[6]!.messages)).toContain('already been passed on 5 times')
  expect(model.requests).toHaveLength(12)
})

test('P10: a killed remote resumes after its restart, and so does the caller', { timeout: 60_000 }, async () => {
  const first = gate()
  const { left, right, model } = await two({
    left: [ask('a'), { text: 'Told.' }],
    right: [held('one two', first), { text: 'three four' }],
  })
  await post(`${left.url}/tasks`, { task_id: 't1', input: 'Go.' })
  await first.reached
  await right.kill()
  first.open()
  await right.start()
  expect(await wait(left, 't1')).toMatchObject({ status: 'success', result: 'Told.' })
  expect(JSON.stringify(requestsOf(model, 'left').at(-1)!.messages)).toContain('three four')
})

test('P10: a caller that is killed takes the same task up again, and it has run once', {
  timeout: 60_000,
}, async () => {
  const last = gate()
  const { left, right, model, effects } = await two({
    left: [ask('a'), { text: 'Told.' }],
    right: [work, held('worked it', last)],
  })
  await post(`${left.url}/tasks`, { task_id: 't1', input: 'Go.' })
  // The remote's own approval comes to the caller, and is decided there after a restart.
  const waiting = await wait(left, 't1')
  expect(waiting).toMatchObject({ status: 'awaiting_confirm', pending_confirms: [{ toolName: 'peer' }] })
  await left.kill()
  await left.start()
  const [{ toolCallId }] = (await wait(left, 't1')).pending_confirms as [{ toolCallId: string }]
  await post(`${left.url}/tasks/t1/resume`, { decisions: [{ toolCallId, approved: true }] })
  await last.reached
  await left.kill()
  await left.start()
  last.open()
  expect(await wait(left, 't1')).toMatchObject({ status: 'success', result: 'Told.' })
  expect(effects('right')).toHaveLength(1)
  expect(requestsOf(model, 'right')).toHaveLength(2)
  expect(right.url).toBeDefined()
})

test('P5: a task that waits for a decision still waits after a kill, and continues with a decision', {
  timeout: 60_000,
}, async () => {
  const { right, effects } = await two({ left: [], right: [work, { text: 'Done.' }] })
  await post(`${right.url}/tasks`, { task_id: 't1', input: 'Go.', context: { detail: 'full' } })
  const before = await wait(right, 't1')
  await right.kill()
  await right.start()
  const after = await wait(right, 't1')
  expect(after).toEqual(before)
  const { toolCallId } = after.pending_confirms[0]!
  expect(await post(`${right.url}/tasks/t1/resume`, { decisions: [{ toolCallId, approved: true }] })).toEqual({
    task_id: 't1',
    status: 'running',
  })
  expect(await wait(right, 't1')).toMatchObject({ status: 'success', result: 'Done.' })
  expect(effects('right')).toHaveLength(1)
  // All events are present, including those from before the kill.
  const events = await (await fetch(`${right.url}/tasks/t1/events`)).text()
  expect([...events.matchAll(/^event: (.*)$/gm)].map((it) => it[1])).toEqual([
    'RUN_STARTED',
    'STATUS',
    'TOOL_CALL_START',
    'TOOL_CALL_END',
    'REQUIRE_CONFIRM',
    'STATUS',
    'STATUS',
    'TOOL_RESULT',
    'TEXT_DELTA',
    'RUN_FINISHED',
  ])
})
