// Clients can disconnect from a stream and resume it.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memory } from '@oxbow/backends/memory'
import { sqlite } from '@oxbow/backends/sqlite'
import { gate, scriptedModel, until } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { custom, endOf, type Frame, framesOf, json, rigs, runInput, textOf, types } from '../test.fixture.ts'
import { readStream } from './reader.fixture.ts'

const start = rigs()
const isText = (it: { type: string }): boolean => it.type === 'TEXT_MESSAGE_CONTENT'
const stopAtOnce = { 'server.disconnectGrace': '0ms' }

/** The conversation that a client holds after these frames: a start for a known id replaces its text. */
function put(frames: readonly Frame[]): Map<unknown, string> {
  const held = new Map<unknown, string>()
  for (const it of frames) {
    const id =
      it.toolCallId === undefined ? it.messageId : `${it.toolCallId}${it.type === 'TOOL_CALL_RESULT' ? ' result' : ''}`
    if (it.type.endsWith('_START') && it.type !== 'REASONING_START') held.set(id, '')
    else if (it.delta !== undefined) held.set(id, held.get(id) + String(it.delta))
    else if (it.type === 'TOOL_CALL_RESULT') held.set(id, String(it.content))
  }
  return held
}

describe('a client that disconnects', () => {
  test('Y6: stops the run', async () => {
    const held = gate()
    const { post, get, model } = await start({
      replies: [{ text: 'one two', hold: { atChunk: 1, gate: held } }],
      overrides: stopAtOnce,
    })
    const reader = readStream(await post('/api/chat/stream', runInput('Hi')))
    await reader.until(isText)
    await reader.leave()
    await model.requests[0]?.waitForAbort()
    const view = await until(async () => {
      const it = await json(get('/api/sessions/thread/messages'))
      return it.status === 'idle' && it
    })
    // The text shown so far is kept.
    expect(view.messages[1]).toMatchObject({
      role: 'assistant',
      partial: true,
      blocks: [{ type: 'text', text: 'one' }],
    })
  })

  test('Y6: does not stop it when the configuration says continue', async () => {
    const held = gate()
    const { post, get, engine } = await start({
      replies: [{ text: 'one two', hold: { atChunk: 1, gate: held } }],
      overrides: { ...stopAtOnce, 'server.onDisconnect': 'continue' },
    })
    const reader = readStream(await post('/api/chat/stream', runInput('Hi')))
    await reader.until(isText)
    await reader.leave()
    await until(async () => /oxbow_streams_open 0/.test(await (await get('/metrics')).text()))
    held.open()
    expect(
      await until(
        async () =>
          (await engine.session({ user: 'default', session: 'thread' }).result('run-1'))?.status === 'finished',
      ),
    ).toBe(true)
  })

  test('Y6: finds the run again when it reconnects within the grace', async () => {
    const held = gate()
    const { post, get, engine } = await start({
      replies: [{ text: 'one two', hold: { atChunk: 1, gate: held } }],
      overrides: { 'server.disconnectGrace': '1m' },
    })
    const reader = readStream(await post('/api/chat/stream', runInput('Hi')))
    await reader.until(isText)
    await reader.leave()
    await until(async () => /oxbow_streams_open 0/.test(await (await get('/metrics')).text()))
    const back = readStream(
      await post('/api/chat/stream', runInput('Hi'), { headers: { 'last-event-id': reader.lastId! } }),
    )
    await back.until(isText)
    held.open()
    const frames = await back.rest()
    expect(textOf(frames)).toBe('one two')
    expect(endOf(frames).type).toBe('RUN_FINISHED')
    expect((await engine.session({ user: 'default', session: 'thread' }).result('run-1'))?.status).toBe('finished')
  })

  test('Y6: does not stop a run that another client watches', async () => {
    const held = gate()
    const { post, get } = await start({
      replies: [{ text: 'one two', hold: { atChunk: 1, gate: held } }],
      overrides: stopAtOnce,
    })
    const reader = readStream(await post('/api/chat/stream', runInput('Hi')))
    await reader.until(isText)
    const other = readStream(await get('/api/sessions/thread/stream'))
    await other.until(isText)
    await reader.leave()
    await until(async () => /oxbow_streams_open 1/.test(await (await get('/metrics')).text()))
    held.open()
    expect(endOf(await other.rest()).type).toBe('RUN_FINISHED')
  })
})

describe('a watcher', () => {
  const noStreams = (rig: { get(path: string): Promise<Response> }) =>
    until(async () => /oxbow_streams_open 0/.test(await (await rig.get('/metrics')).text()))
  const slow = (held: ReturnType<typeof gate>) => [{ text: 'one two', hold: { atChunk: 1, gate: held } }]
  const watch = async (rig: { get(path: string): Promise<Response> }) => {
    const reader = readStream(await rig.get('/api/sessions/thread/stream'))
    await reader.until((it) => it.name === 'stream_resumed')
    await reader.leave()
    await noStreams(rig)
  }

  test('never stops a turn that was not started over HTTP', async () => {
    const held = gate()
    const it = await start({ replies: slow(held), overrides: stopAtOnce })
    const session = it.engine.session({ user: 'default', session: 'thread' })
    const running = session.run('Hi', { turnId: 't1' })
    await held.reached
    await watch(it)
    await watch(it)
    held.open()
    expect(await running).toMatchObject({ status: 'finished', text: 'one two' })
  })

  test('never stops a turn of another service, even when the request is repeated here', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'oxbow-watch-'))
    const store = () => sqlite({ path: join(folder, 'oxbow.db') })
    const held = gate()
    const one = await start({ backend: store(), replies: slow(held), overrides: stopAtOnce })
    const two = await start({ backend: store(), overrides: stopAtOnce })
    const reader = readStream(await one.post('/api/chat/stream', runInput('Hi')))
    await reader.until(isText)
    await watch(two)
    const again = readStream(await two.post('/api/chat/stream', runInput('Hi')))
    await again.until((it) => it.name === 'stream_resumed')
    await again.leave()
    await noStreams(two)
    held.open()
    expect(endOf(await reader.rest()).type).toBe('RUN_FINISHED')
    await Promise.all([one.close(), two.close()])
    await rm(folder, { recursive: true })
  })

  test('never stops a turn whose client is still connected', async () => {
    const held = gate()
    const it = await start({ replies: slow(held), overrides: stopAtOnce })
    const reader = readStream(await it.post('/api/chat/stream', runInput('Hi')))
    await reader.until(isText)
    const other = readStream(await it.get('/api/sessions/thread/stream'))
    await other.until(isText)
    await other.leave()
    await until(async () => /oxbow_streams_open 1/.test(await (await it.get('/metrics')).text()))
    held.open()
    expect(endOf(await reader.rest()).type).toBe('RUN_FINISHED')
  })

  test('keeps a turn alive after its client has disconnected', async () => {
    const held = gate()
    const it = await start({ replies: slow(held), overrides: stopAtOnce })
    const reader = readStream(await it.post('/api/chat/stream', runInput('Hi')))
    await reader.until(isText)
    const other = readStream(await it.get('/api/sessions/thread/stream'))
    await other.until(isText)
    await reader.leave()
    await until(async () => /oxbow_streams_open 1/.test(await (await it.get('/metrics')).text()))
    expect((await json(it.get('/api/sessions/thread/messages'))).status).toBe('running')
    await other.leave()
    await it.model.requests[0]?.waitForAbort()
  })
})

describe('a resumed stream', () => {
  test('within an answer, announces that text repeats, and sends it in full', async () => {
    const held = gate()
    const { post } = await start({ replies: [{ text: 'one two three', hold: { atChunk: 2, gate: held } }] })
    const reader = readStream(await post('/api/chat/stream', runInput('Hi')))
    await reader.until(isText)
    await held.reached
    const back = readStream(await post(`/api/chat/stream?after=${reader.lastId}`, runInput('Hi')))
    await back.until(isText)
    held.open()
    const frames = await back.rest()
    expect(types(frames).slice(0, 2)).toEqual(['RUN_STARTED', 'CUSTOM'])
    expect(custom(frames, 'stream_resumed')).toEqual([{ after: Number(reader.lastId), repeats: true }])
    expect(textOf(frames)).toBe('one two three')
    expect(endOf(await reader.rest()).type).toBe('RUN_FINISHED')
  })

  test('between two steps, continues there and repeats nothing', async () => {
    const held = gate()
    const { tool } = await import('@oxbow/core')
    const look = tool({
      name: 'look',
      description: 'Looks.',
      effects: ['read'],
      input: { type: 'object', properties: {} },
      run: () => held.pass().then(() => 'seen'),
    })
    const { post } = await start({
      agent: { tools: [look] },
      replies: [{ text: 'I look.', calls: [{ name: 'look' }] }, { text: 'Seen.' }],
    })
    const reader = readStream(await post('/api/chat/stream', runInput('Hi')))
    await reader.until((it) => it.name === 'token_usage')
    await held.reached
    const back = readStream(
      await post('/api/chat/stream', runInput('Hi'), { headers: { 'last-event-id': reader.lastId! } }),
    )
    await back.until((it) => it.type === 'RUN_STARTED')
    held.open()
    const frames = await back.rest()
    expect(custom(frames, 'stream_resumed')).toEqual([{ after: Number(reader.lastId), repeats: false }])
    expect(types(frames).filter((it) => it.startsWith('TOOL_CALL'))).toEqual(['TOOL_CALL_RESULT'])
    expect(textOf(frames)).toBe('Seen.')
    // The sum still includes the step that is not repeated.
    expect(custom(frames, 'token_usage').at(-1).cumulative.inputTokens).toBe(20)
  })

  test('from any frame, gives the reader everything it missed', async () => {
    const { tool } = await import('@oxbow/core')
    const look = tool({
      name: 'look',
      description: 'Looks.',
      effects: ['read'],
      input: { type: 'object', properties: {} },
      run: () => 'seen',
    })
    const { post, get } = await start({
      agent: { tools: [look] },
      replies: [
        { thinking: 'I think.', text: 'I look.', calls: [{ name: 'look' }, { name: 'look', arguments: { at: 'it' } }] },
        { text: 'Seen it all.' },
      ],
    })
    const wire = await (await post('/api/chat/stream', runInput('Hi'))).text()
    const parts = wire.trimEnd().split('\n\n')
    const whole = put(framesOf(wire))
    expect(whole.size).toBe(7)
    for (let cut = 1; cut <= parts.length; cut++) {
      const had = parts.slice(0, cut).join('\n\n')
      const lastId = [...had.matchAll(/^id: (\d+)$/gm)].at(-1)?.[1] ?? '1'
      const rest = framesOf(await (await get(`/api/sessions/thread/stream?after=${lastId}`)).text())
      endOf(rest)
      expect(put([...framesOf(`${had}\n\n`), ...rest])).toEqual(whole)
      // Complete blocks are not repeated, and repeated ones are announced.
      const repeated = types(rest).some(
        (type, i) => type === 'TEXT_MESSAGE_START' && had.includes(String(rest[i]!.messageId)),
      )
      if (repeated) expect(custom(rest, 'stream_resumed')).toMatchObject([{ repeats: true }])
    }
  })

  test('after its end, repeats the end', async () => {
    const { post, get } = await start({ replies: { always: { text: 'Done.' } } })
    const reader = readStream(await post('/api/chat/stream', runInput('Hi')))
    await reader.rest()
    for (const answer of [
      await post('/api/chat/stream', runInput('Hi'), { headers: { 'last-event-id': reader.lastId! } }),
      await get(`/api/sessions/thread/stream?after=999999`),
    ]) {
      const frames = await readStream(answer).rest()
      expect(types(frames)).toEqual(['RUN_STARTED', 'CUSTOM', 'RUN_FINISHED'])
    }
  })

  test('without a number, is the whole run again, and still one turn', async () => {
    const { post, model } = await start({ replies: [{ text: 'Once.' }] })
    await (await post('/api/chat/stream', runInput('Hi'))).text()
    const frames = await readStream(await post('/api/chat/stream', runInput('Hi'))).rest()
    expect(custom(frames, 'stream_resumed')).toEqual([{ after: 1, repeats: true }])
    expect(textOf(frames)).toBe('Once.')
    expect(model.requests).toHaveLength(1)
  })

  test('accepts a runId that is not a valid id, as one turn', async () => {
    const { post, model } = await start({ replies: [{ text: 'Once.' }] })
    const input = runInput('Hi', { runId: 'run/ü with spaces' })
    await (await post('/api/chat/stream', input)).text()
    const frames = await readStream(await post('/api/chat/stream', input)).rest()
    expect(endOf(frames)).toMatchObject({ type: 'RUN_FINISHED', runId: 'run/ü with spaces' })
    expect(model.requests).toHaveLength(1)
  })

  test.each(['-1', 'x', '1.5', '99999999999999999999'])('from %j is a 400', async (after) => {
    const { post } = await start()
    expect((await post(`/api/chat/stream?after=${after}`, runInput('Hi'))).status).toBe(400)
  })

  test('ignores a number for a new run', async () => {
    const { post } = await start({ replies: { always: { text: 'New.' } } })
    const frames = await readStream(
      await post('/api/chat/stream', runInput('Hi'), { headers: { 'last-event-id': '900' } }),
    ).rest()
    expect(custom(frames, 'stream_resumed')).toEqual([])
    expect(textOf(frames)).toBe('New.')
  })

  test('by GET, is of the named turn, of the open one, or of the last one', async () => {
    const { post, get } = await start({ replies: [{ text: 'one' }, { text: 'two' }] })
    await (await post('/api/chat/stream', runInput('Hi', { runId: 'r1' }))).text()
    await (await post('/api/chat/stream', runInput('Hi', { runId: 'r2' }))).text()
    const textAt = async (query: string) =>
      textOf(await readStream(await get(`/api/sessions/thread/stream${query}`)).rest())
    expect(await textAt('')).toBe('two')
    expect(await textAt('?turnId=r1')).toBe('one')
    expect((await get('/api/sessions/thread/stream?turnId=none')).status).toBe(404)
    expect((await get('/api/sessions/none/stream')).status).toBe(404)
    expect((await get('/api/sessions/thread/stream?userId=alice')).status).toBe(404)
    expect((await get('/api/sessions/thread/stream', { method: 'HEAD' })).status).toBe(200)
  })
})

test('Y7: any replica streams a turn that another replica works on', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'oxbow-replicas-'))
  const store = () => sqlite({ path: join(folder, 'oxbow.db') })
  const held = gate()
  const model = await scriptedModel({ scripts: { '*': [{ text: 'one two three', hold: { atChunk: 1, gate: held } }] } })
  const one = await start({ backend: store(), model })
  const two = await start({ backend: store(), model })
  const reader = readStream(await one.post('/api/chat/stream', runInput('Hi')))
  await reader.until(isText)
  const elsewhere = readStream(await two.get('/api/sessions/thread/stream'))
  const retried = readStream(await two.post('/api/chat/stream', runInput('Hi')))
  await elsewhere.until((it) => it.type === 'RUN_STARTED')
  await retried.until((it) => it.type === 'RUN_STARTED')
  held.open()
  for (const it of [reader, elsewhere, retried]) {
    const frames = await it.rest()
    expect(textOf(frames)).toBe('one two three')
    expect(endOf(frames).type).toBe('RUN_FINISHED')
  }
  expect(model.requests).toHaveLength(1)
  await Promise.all([one.close(), two.close()])
  await model.close()
  await rm(folder, { recursive: true })
})

describe('a stopping service', () => {
  test('tells open streams that their turns continue, and the next service resumes them under new ids', async () => {
    const backend = memory()
    const shared = { ...backend, close: async () => {} }
    const model = await scriptedModel({
      scripts: { '*': [{ text: 'half an answer', silentAfterChunks: 1 }, { text: 'the whole answer' }] },
    })
    const first = await start({ backend: shared, model, overrides: { 'server.shutdownGrace': '0ms' } })
    const reader = readStream(await first.post('/api/chat/stream', runInput('Hi')))
    await reader.until(isText)
    const closing = first.service.close()
    const end = endOf(await reader.rest())
    expect(end).toMatchObject({
      type: 'RUN_ERROR',
      code: 'INTERRUPTED_ERROR',
      message: expect.stringContaining('resumed'),
    })
    await closing

    const second = await start({ backend: shared, model })
    const frames = await readStream(
      await second.post('/api/chat/stream', runInput('Hi'), { headers: { 'last-event-id': reader.lastId! } }),
    ).rest()
    expect(custom(frames, 'stream_resumed')).toEqual([{ after: Number(reader.lastId), repeats: true }])
    expect(custom(frames, 'hint').map((it) => it.source)).toEqual(['step_restarted'])
    expect(textOf(frames)).toBe('the whole answer')
    expect(frames.find((it) => it.type === 'TEXT_MESSAGE_START')?.messageId).not.toBe(
      reader.frames.find((it) => it.type === 'TEXT_MESSAGE_START')?.messageId,
    )
    endOf(frames)
    await model.close()
  })

  test('lets turns finish within its grace', async () => {
    const held = gate()
    const { post, get, service } = await start({ replies: [{ text: 'one two', hold: { atChunk: 1, gate: held } }] })
    const answer = await post('/api/chat/stream', runInput('Hi'))
    await held.reached
    const closing = service.close()
    expect((await get('/readyz')).status).toBe(503)
    held.open()
    expect(endOf(await readStream(answer).rest()).type).toBe('RUN_FINISHED')
    await closing
  })

  test.each([
    ['stops a turn without watchers', false, 'turn.cancelled'],
    ['leaves a turn with a reconnected reader to the next start', true, 'turn.yielded'],
  ])('%s', async (_what, comesBack, lastEvent) => {
    const backend = memory()
    const held = gate()
    const { post, get, service } = await start({
      backend: { ...backend, close: async () => {} },
      replies: [{ text: 'one two', hold: { atChunk: 1, gate: held } }],
      overrides: { 'server.disconnectGrace': '1m', 'server.shutdownGrace': '0ms' },
    })
    const reader = readStream(await post('/api/chat/stream', runInput('Hi')))
    await reader.until(isText)
    await reader.leave()
    await until(async () => /oxbow_streams_open 0/.test(await (await get('/metrics')).text()))
    if (comesBack) await readStream(await post('/api/chat/stream', runInput('Hi'))).until(isText)
    await service.close()
    const journal = await backend.journal.read({ tenant: 'default', user: 'default', session: 'thread' }, 0)
    expect(journal.at(-1)?.type).toBe(lastEvent)
  })

  test('answers a waiting POST /api/chat with a 503', async () => {
    const held = gate()
    const { post, service } = await start({
      replies: [{ text: 'one two', hold: { atChunk: 1, gate: held } }],
      overrides: { 'server.shutdownGrace': '0ms' },
    })
    const answer = post('/api/chat', { message: 'Hi' })
    await held.reached
    await Promise.all([service.close(), answer])
    expect((await answer).status).toBe(503)
    expect((await json(answer)).error.code).toBe('shutting_down')
  })
})
