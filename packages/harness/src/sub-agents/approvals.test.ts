import { createLogger, createService, loadConfig } from '@oxbow/server'
import { eventsOf, until } from '@oxbow/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { subAgents } from '../index.ts'
import { calls, childrenOf, handOff, sent, spawn, type Tree, tree, worker } from './sub-agents.fixture.ts'

/** lead › editor › writer, whose `write` needs an approval. */
async function three(options: { background?: boolean; writer?: Parameters<typeof tree>[0][string] } = {}) {
  const ran: string[] = []
  const it = await tree(
    {
      lead: [
        spawn('editor', 'Edit.', options.background ? { background: true } : {}),
        { text: 'Told.' },
        { text: 'Again.' },
      ],
      editor: [spawn('writer', 'Write.'), handOff('Edited.')],
      writer: options.writer ?? [calls('write', { what: 'draft' }), handOff('Written.')],
    },
    (of) => {
      const grant = { effects: ['write'] as const }
      const writer = of('writer', { tools: [worker('write', ['write'], ran)] })
      const editor = of('editor', { capabilities: [subAgents([{ description: 'Writes.', agent: writer }], { grant })] })
      return of('lead', { capabilities: [subAgents([{ description: 'Edits.', agent: editor }], { grant })] })
    },
    { store: 'sqlite' },
  )
  return { ...it, ran }
}

interface Answer {
  readonly status: string
  readonly approvals: { readonly id: string }[]
}

async function serve(it: Tree): Promise<(path: string, body?: object) => Promise<Answer>> {
  const service = createService({
    engine: it.engine,
    config: await loadConfig({ environment: { OXBOW_PROFILE: 'test' } }),
    log: createLogger({ level: 'silent', format: 'json', environment: {} }),
  })
  const { url } = await service.listen()
  onTestFinished(() => service.close())
  return async (path, body) => {
    const init = body && { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    return (await (await fetch(`${url}${path}`, init)).json()) as Answer
  }
}

const writerOf = async ({ engine, root }: Tree) => {
  const [editor] = await childrenOf(engine, root)
  const [writer] = await childrenOf(engine, editor!)
  return { editor: editor!, writer: writer! }
}

describe('H10: an approval two levels down', () => {
  test('is shown at the root with its call and agent; approved there, it runs in place', async () => {
    const it = await three()
    const paused = await it.root.run('Go.', { turnId: 't1' })
    expect(paused).toMatchObject({ status: 'paused', reason: 'approval' })
    expect(paused.approvals).toMatchObject([
      {
        tool: 'write',
        arguments: { what: 'draft' },
        reason: expect.stringContaining('The agent writer asks'),
        suggestions: ['write(draft)'],
        origin: { agents: ['lead', 'editor', 'writer'] },
      },
    ])
    await it.root.decide(paused.approvals[0]!.approvalId, { verdict: 'approved' })
    expect((await it.root.wait('t1')).text).toBe('Told.')
    expect(it.ran).toEqual(['draft'])
    const { writer } = await writerOf(it)
    expect(await eventsOf(writer, 'approval.resolved')).toMatchObject([
      { verdict: 'approved', principal: { user: 'ann' } },
    ])
    // No model was called twice.
    expect(it.model.requests.map((request) => request.model)).toEqual([
      'lead',
      'editor',
      'writer',
      'writer',
      'editor',
      'lead',
    ])
  })

  test('is denied there with the reason', async () => {
    const it = await three()
    const { approvals } = await it.root.run('Go.', { turnId: 't1' })
    await it.root.decide(approvals[0]!.approvalId, { verdict: 'denied', reason: 'not today' })
    await it.root.wait('t1')
    expect(it.ran).toEqual([])
    expect(sent(it.model, 'writer')[0]).toContain('not today')
  })

  test('accepts other arguments, which are validated where they are used', async () => {
    const it = await three()
    const { approvals } = await it.root.run('Go.', { turnId: 't1' })
    const [{ approvalId }] = approvals as [(typeof approvals)[0]]
    const wrong = it.root.decide(approvalId, { verdict: 'approved', arguments: { what: {} } })
    await expect(wrong).rejects.toMatchObject({ code: 'arguments_invalid' })
    expect(it.ran).toEqual([])
    await it.root.decide(approvalId, { verdict: 'approved', arguments: { what: 'final' } })
    await it.root.wait('t1')
    expect(it.ran).toEqual(['final'])
    const again = it.root.decide(approvalId, { verdict: 'approved' })
    await expect(again).rejects.toMatchObject({ code: 'unknown_approval' })
  })

  test('may be decided where it arose, which decides it above as well', async () => {
    const it = await three()
    await it.root.run('Go.', { turnId: 't1' })
    const { writer, editor } = await writerOf(it)
    const { turn } = await writer.state()
    const { approvalId } = turn!.calls[0]!.approval!.requested
    await writer.decide(approvalId, { verdict: 'approved', arguments: { what: 'final' } })
    await it.root.wait('t1')
    expect(it.ran).toEqual(['final'])
    for (const session of [editor, it.root])
      expect(await eventsOf(session, 'approval.resolved')).toMatchObject([
        { verdict: 'approved', arguments: { what: 'final' } },
      ])
  })

  test('is kept in the journals: another process resumes it in place', async () => {
    const it = await three()
    const { approvals } = await it.root.run('Go.', { turnId: 't1' })
    await it.engine.stop(0)
    const there = it.another()
    const root = there.session(it.root.key)
    await root.decide(approvals[0]!.approvalId, { verdict: 'approved' })
    expect((await root.wait('t1')).text).toBe('Told.')
    expect(it.ran).toEqual(['draft'])
    expect(it.model.requests).toHaveLength(6)
  })

  test('is closed when the root is stopped meanwhile', async () => {
    const it = await three()
    await it.root.run('Go.', { turnId: 't1' })
    await it.root.interrupt({ turnId: 't1' })
    await it.root.wait('t1')
    const { writer } = await writerOf(it)
    await until(async () => (await writer.state()).turn === undefined)
    expect(await eventsOf(writer, 'turn.cancelled')).toHaveLength(1)
    expect(it.ran).toEqual([])
  })

  test('two of one child are requested one after the other, each once', async () => {
    const both = { calls: ['a', 'b'].map((what) => ({ name: 'write', arguments: { what } })) }
    const it = await three({ writer: [both, handOff('Written.')] })
    const { approvals } = await it.root.run('Go.', { turnId: 't1' })
    expect(approvals).toMatchObject([{ arguments: { what: 'a' } }])
    await it.root.decide(approvals[0]!.approvalId, { verdict: 'approved' })
    const next = await it.root.wait('t1')
    expect(next.approvals).toMatchObject([{ arguments: { what: 'b' } }])
    await it.root.decide(next.approvals[0]!.approvalId, { verdict: 'denied' })
    expect((await it.root.wait('t1')).text).toBe('Told.')
    expect(it.ran).toEqual(['a'])
  })
})

describe('H10: the inbox', () => {
  test('shows a child’s approval exactly once, with root and source, and can decide it', async () => {
    const it = await three()
    const http = await serve(it)
    await it.root.run('Go.', { turnId: 't1' })
    const { writer } = await writerOf(it)
    const { approvals } = await http('/api/approvals?userId=ann')
    expect(approvals).toMatchObject([
      {
        sessionId: 's1',
        tool: 'write',
        source: { rootSessionId: 's1', sessionId: writer.key.session, agents: ['lead', 'editor', 'writer'] },
      },
    ])
    const decided = await http(`/api/approvals/${approvals[0]!.id}`, {
      userId: 'ann',
      verdict: 'approved',
      arguments: { what: 'final' },
    })
    expect(decided).toMatchObject({ status: 'approved', resolution: { changes: [{ argument: 'what', to: 'final' }] } })
    await it.root.wait('t1')
    expect(it.ran).toEqual(['final'])
    expect((await http('/api/approvals?userId=ann')).approvals).toEqual([])
  })

  test('shows a background approval exactly once, although no parent waits for it', async () => {
    const it = await three({ background: true })
    const http = await serve(it)
    await it.root.run('Go.', { turnId: 't1' })
    const { writer, editor } = await (async () => {
      await until(async () => (await childrenOf(it.engine, it.root)).length === 1)
      const [session] = await childrenOf(it.engine, it.root)
      await until(async () => (await session!.state()).turn?.paused !== undefined)
      return writerOf(it)
    })()
    const { approvals } = await http('/api/approvals?userId=ann')
    expect(approvals).toMatchObject([
      {
        sessionId: editor.key.session,
        source: { rootSessionId: 's1', sessionId: writer.key.session, agents: ['lead', 'editor', 'writer'] },
      },
    ])
    await http(`/api/approvals/${approvals[0]!.id}`, { userId: 'ann', verdict: 'approved' })
    await until(async () => (await eventsOf(it.root, 'child.closed')).length === 1)
    expect(it.ran).toEqual(['draft'])
  })
})

test('H10: the AG-UI stream reports a child’s activity, with its source', async () => {
  const it = await tree({ lead: [spawn('reader'), { text: 'Told.' }], reader: [handOff('Read.')] }, (of) =>
    of('lead', { capabilities: [subAgents([{ description: 'Reads.', agent: of('reader') }])] }),
  )
  const service = createService({
    engine: it.engine,
    config: await loadConfig({ environment: { OXBOW_PROFILE: 'test' } }),
    log: createLogger({ level: 'silent', format: 'json', environment: {} }),
  })
  const { url } = await service.listen()
  onTestFinished(() => service.close())
  const answer = await fetch(`${url}/api/chat/stream`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      threadId: 's2',
      runId: 'r1',
      messages: [{ id: 'm1', role: 'user', content: 'Go.' }],
      tools: [],
      context: [],
      state: {},
      forwardedProps: {},
    }),
  })
  const frames = (await answer.text())
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => JSON.parse(line.slice('data: '.length)))
  const shown = frames.filter((frame) => frame.type === 'CUSTOM' && frame.name === 'sub_agent')
  expect(shown.map((frame) => frame.value.event.type)).toContain('model.finished')
  expect(shown[0].value.source).toMatchObject({ agents: ['lead', 'reader'], sessions: ['s2', expect.any(String)] })
  expect(frames.at(-1).type).toBe('RUN_FINISHED')
})
