// Long conversations, through the engine and over HTTP.
import { type Capability, slot, slotValue, tool } from '@oxbow/core'
import { eventsOf, gate, type ScriptedRequest } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { bench, compactions, notes, read, saying, textOf, tooLong } from './compaction.fixture.ts'

const readPage = (page: string, tokens = 100) => saying('', tokens, { calls: [{ name: 'read', arguments: { page } }] })

/** Roughly a provider's count. */
const sizeOf = (request: ScriptedRequest): number =>
  Math.ceil(JSON.stringify([request.messages, request.tools]).length / 4)

describe('Y7: a session compacts itself', () => {
  test('at 30 messages it keeps the newest 10, a summary, and the user’s words verbatim', async () => {
    const { session, asked, summaries } = await bench({ always: saying('Noted, I have done that.', 100) }, () =>
      notes('The answer to everything is 42.'),
    )
    for (let n = 1; n <= 15; n++) await session.run(`Request number ${n}, please.`)
    expect(await compactions(session)).toHaveLength(0)
    await session.run('Request number 16, please.')
    const [event] = await compactions(session)
    expect(event).toMatchObject({ reason: 'messages', tier: 'summary', messagesBefore: 31, messagesAfter: 11 })
    expect(summaries()).toHaveLength(1)
    // The summary's usage is part of the usage of the turn and the session.
    const { usage } = await session.state()
    expect(usage.outputTokens).toBe(16 * 10 + event!.usage!.outputTokens)
    expect((await session.result(event!.turnId))!.usage.outputTokens).toBe(10 + event!.usage!.outputTokens)

    const last = asked()
      .at(-1)!
      .messages.filter((it) => it.role !== 'system')
    expect(last).toHaveLength(11)
    const text = textOf(last)
    expect(text).toContain('The answer to everything is 42.')
    for (let n = 1; n <= 16; n++) expect(text).toContain(`Request number ${n}, please.`)

    for (let n = 17; n <= 24; n++) await session.run(`Request number ${n}, please.`)
    expect(await compactions(session)).toHaveLength(1)
  })

  test('invalid settings fail at the start, with the arithmetic', async () => {
    await expect(bench([], [], { trigger: 11, keep: 10 })).rejects.toMatchObject({
      code: 'compaction_invalid',
      message: expect.stringContaining('keep 10 + 1 summary = 11 messages'),
    })
    await expect(bench([], [], { contextWindow: 8_000 }, { maxOutputTokens: 4_000 })).rejects.toThrow(
      'window 8000 × threshold 0.6 = 4800 tokens, but only 8000 − 4000 for the answer = 4000',
    )
    await expect(bench([], [], { contextWindow: 8_000, summaryTokens: 5_000 })).rejects.toThrow(
      /= \d+ tokens do not fit/,
    )
    await expect(bench([], [], { contextWindow: 4_000 }, { instructions: 'x'.repeat(20_000) })).rejects.toThrow(
      /instructions and tools \d{4} \+ summary 400/,
    )
    await expect(bench([], [], { threshold: 60 })).rejects.toThrow('threshold must be between 0 and 1, not 60')
  })
})

describe('H7: when the context passes the threshold', () => {
  test('old results become references first, without a model, even in the middle of a turn', async () => {
    const pages = ['one', 'two', 'three', 'four']
    const { session, asked, summaries } = await bench(
      (request) => {
        const page = pages[request.messages.filter((it) => it.role === 'tool').length]
        return page === undefined ? saying('Read them all.', sizeOf(request)) : readPage(page, sizeOf(request))
      },
      [],
      { contextWindow: 8_000, keep: 3 },
    )
    const { text } = await session.run('Read four pages.')
    expect(text).toBe('Read them all.')
    const [event] = await compactions(session)
    expect(event).toMatchObject({ reason: 'threshold', tier: 'references' })
    expect(event!.tokensAfter).toBeLessThan(event!.tokensBefore)
    expect(summaries()).toHaveLength(0)
    const results = asked()
      .at(-1)!
      .messages.filter((it) => it.role === 'tool')
      .map((it) => String(it.content))
    expect(results[0]).toContain('session_read {"call":"')
    expect(results[0]!.length).toBeLessThan(600)
    expect(results.at(-1)!.length).toBeGreaterThan(4_000)
  })

  test('omitted content can be read by its reference', async () => {
    let reference = ''
    const { session, asked } = await bench(
      (request) => {
        const text = textOf(request.messages)
        const results = request.messages.filter((it) => it.role === 'tool')
        reference = /session_read \{\\+"call\\+":\\+"([^"\\]+)/.exec(text)?.[1] ?? ''
        if (results.length < 4) return readPage(`p${results.length}`, 1_500 * (results.length + 1))
        if (results.length === 4)
          return saying('', 3_000, { calls: [{ name: 'session_read', arguments: { call: reference } }] })
        return saying('Now I know.', 3_000)
      },
      [],
      { contextWindow: 8_000, keep: 3 },
    )
    expect((await session.run('Read.')).text).toBe('Now I know.')
    const last = String(
      asked()
        .at(-1)!
        .messages.findLast((it) => it.role === 'tool')!.content,
    )
    expect(last).toContain('end of p0')
    expect(last).toContain('"page":"p0"')
  })

  test('the system prompt is never part of a summary, and between compactions the prefix is the same', async () => {
    const { session, asked } = await bench(
      (request) => saying('Yes.', sizeOf(request)),
      () => notes('Some fact.'),
      { contextWindow: 4_000, keep: 4, trigger: 1_000 },
      { instructions: 'RULE ONE: be kind.' },
    )
    for (let n = 0; n < 90; n++) await session.run(`${n} ${'word '.repeat(46)}`)
    expect((await compactions(session)).length).toBeGreaterThan(2)
    for (const { messages } of asked()) expect(String(messages[0]!.content)).toContain('RULE ONE: be kind.')
    const bodies = asked().map((it) => it.messages.map((message) => JSON.stringify(message)))
    const broken = bodies.slice(1).filter((body, n) => bodies[n]!.some((it, at) => body[at] !== it))
    expect(broken.length).toBe((await compactions(session)).filter((it) => it.messages !== undefined).length)
  })

  test('facts survive summaries of summaries, and finished work leaves the notes', async () => {
    let summary = 0
    const { session, asked, summaries } = await bench(
      { always: saying('Fine.', 100) },
      () => {
        summary += 1
        const add = [
          { kind: 'fact', text: `Fact of summary ${summary}.` },
          { kind: 'open', text: `Work of summary ${summary}.` },
        ]
        return { text: JSON.stringify({ add, ...(summary === 3 && { done: ['n2', 'n1'] }) }) }
      },
      { trigger: 8, keep: 2 },
    )
    for (let n = 0; n < 16; n++) await session.run(`Step ${n}`)
    expect(summary).toBeGreaterThan(3)
    const text = textOf(asked().at(-1)!.messages)
    for (let n = 1; n < summary; n++) expect(text).toContain(`Fact of summary ${n}.`)
    expect(text).not.toContain('Work of summary 1.')
    expect(text).toContain('Work of summary 2.')
    expect(textOf(summaries()[1]!.messages)).toContain('n1: Fact of summary 1.')
  })
})

describe('an invalid summary changes nothing', () => {
  const bad = {
    'that is empty': { text: '' },
    'whose every section says none': { text: '{"add":[{"kind":"goal","text":"(none)"},{"kind":"fact","text":"N/A"}]}' },
    'that is not JSON': { text: 'We talked about this and that.' },
    'of another structure': { text: '{"add":[{"kind":"rumour","text":"x"}]}' },
    'that is too long': notes(...Array.from({ length: 30 }, (_, n) => `${n} ${'word '.repeat(115)}`)),
    'that fails': { status: 400, body: { error: { message: 'no' } } },
    'that always overflows': tooLong,
  }
  test.each(Object.entries(bad))('one %s', async (_, reply) => {
    const { session, asked, summaries } = await bench(
      { always: saying('Yes.', 100) },
      { always: reply },
      {
        trigger: 6,
        keep: 2,
      },
    )
    for (let n = 0; n < 4; n++) await session.run(`Request ${n}`)
    const [event] = await compactions(session)
    expect(event).toMatchObject({ tier: 'none', failure: { code: expect.any(String) } })
    expect(event!.messages).toBeUndefined()
    expect(asked().at(-1)!.messages).toHaveLength(1 + 7)
    // The request for a summary never becomes part of the conversation.
    expect(textOf(asked().at(-1)!.messages)).not.toContain('Notes so far')
    const tries = summaries().length
    await session.run('one more')
    expect(summaries()).toHaveLength(tries)
  })

  test('old results still become references where needed', async () => {
    const { session, summaries } = await bench(
      (request) => {
        const read = request.messages.filter((it) => it.role === 'tool').length
        return read < 2 ? readPage(`p${read}`, sizeOf(request)) : saying('Done.', sizeOf(request))
      },
      { always: { text: 'no' } },
      { contextWindow: 8_000, keep: 2, userTokens: 500 },
    )
    await session.run('Go.')
    await session.run(`And ${'now '.repeat(3_300)}`)
    const [event] = await compactions(session)
    expect(summaries()).toHaveLength(1)
    expect(event).toMatchObject({ reason: 'threshold', tier: 'references', failure: { code: 'summary_invalid' } })
  })
})

describe('H7: a provider refuses the request as too long', () => {
  test.each([
    ['on the first call', [tooLong, saying('Yes.', 100)]],
    ['after tools', [readPage('one'), readPage('two'), tooLong, saying('Yes.', 100)]],
  ])('%s: the context is compacted and the call retried once', async (where, replies) => {
    const { session } = await bench(replies, { always: notes('A fact.') })
    // A long earlier message, so that there is something to remove.
    const first = where.includes('first')
    const result = await session.run('Go.').catch((error: unknown) => error)
    const [event] = await compactions(session)
    expect(event).toMatchObject({ reason: 'overflow' })
    if (first) expect(result).toMatchObject({ code: 'context_full', message: expect.stringContaining('instructions') })
    else expect(result).toMatchObject({ status: 'finished', text: 'Yes.' })
  })

  test('a second refusal fails the turn, with what fills the window', async () => {
    const { session, asked } = await bench([readPage('one'), readPage('two'), tooLong, tooLong], {
      always: notes('A fact.'),
    })
    await expect(session.run('Go.')).rejects.toMatchObject({
      code: 'context_overflow',
      message: expect.stringMatching(/instructions \d+, tools \d+.*results \d+/),
    })
    expect(asked()).toHaveLength(4)
    expect(await compactions(session)).toHaveLength(1)
  })

  test('it also works at the last step, which offers no tools', async () => {
    const { session, asked } = await bench(
      [readPage('one'), readPage('two'), tooLong, saying('That is all.', 100)],
      { always: notes('A fact.') },
      {},
      { limits: { maxSteps: 2 } },
    )
    expect(await session.run('Go.')).toMatchObject({ status: 'finished', reason: 'max_steps', text: 'That is all.' })
    expect(asked().at(-1)!.tools).toEqual([])
  })

  test('while summarising: the material is halved, then no summary is made', async () => {
    let tries = 0
    const { session, summaries } = await bench(
      { always: saying('Yes.', 100) },
      () => (tries++ === 0 ? tooLong : notes('It worked.')),
      { trigger: 6, keep: 2 },
    )
    for (let n = 0; n < 4; n++) await session.run(`Request ${n} ${'x '.repeat(500)}`)
    expect((await compactions(session))[0]).toMatchObject({ tier: 'summary' })
    const [whole, half] = summaries().map((it) => textOf(it.messages).length)
    expect(half).toBeLessThan(whole! * 0.7)
  })

  test('a partly streamed answer is not retried', async () => {
    const { session, asked } = await bench(
      [{ text: 'Half an', error: { code: 'context_length_exceeded', message: 'maximum context length' } }],
      [],
    )
    await expect(session.run('Go.')).rejects.toMatchObject({ code: 'context_overflow' })
    expect(asked()).toHaveLength(1)
  })
})

test('a provider that does not support a schema is called without one', async () => {
  const { session, summaries } = await bench(
    { always: saying('Yes.', 100) },
    ({ body }) =>
      'response_format' in body ? { status: 400, body: { error: { message: 'no such field' } } } : notes('A fact.'),
    { trigger: 6, keep: 2 },
  )
  for (let n = 0; n < 4; n++) await session.run(`Request ${n}`)
  expect((await compactions(session))[0]).toMatchObject({ tier: 'summary' })
  expect(summaries()).toHaveLength(2)
})

test('an agent without compaction fails', async () => {
  const { session, asked } = await bench([tooLong], [], {}, { capabilities: [] })
  await expect(session.run('Go.')).rejects.toMatchObject({ code: 'context_overflow' })
  expect(asked()).toHaveLength(1)
})

test('while approvals are open nothing is compacted, and their calls stay paired with their results', async () => {
  const { session, asked } = await bench(
    (request) => {
      const done = request.messages.some((it) => it.role === 'tool')
      if (done || request.messages.length < 8) return saying('Yes.', 100)
      return saying('', 100, {
        calls: [
          { name: 'read', arguments: { page: 'a' } },
          { name: 'read', arguments: { page: 'b' } },
        ],
      })
    },
    () => notes('A fact.'),
    { trigger: 9, keep: 3 },
    { tools: [read], ask: ['read'] },
  )
  for (let n = 0; n < 3; n++) await session.run(`Request ${n}`)
  const paused = await session.run('Now read.')
  expect(paused.approvals).toHaveLength(2)
  expect(await compactions(session)).toHaveLength(0)
  await expect(session.compact()).rejects.toMatchObject({ code: 'session_busy' })
  const turn = paused.turnId
  for (const { approvalId } of paused.approvals) await session.decide(approvalId, { verdict: 'approved' })
  expect((await session.wait(turn)).status).toBe('finished')
  expect((await compactions(session))[0]).toMatchObject({ tier: 'summary' })
  const roles = asked()
    .at(-1)!
    .messages.map((it) => it.role)
  expect(roles.slice(-3)).toEqual(['assistant', 'tool', 'tool'])
})

test('the folded state is the same event by event, all at once, and from a snapshot', async () => {
  const { session, backend, engine } = await bench({ always: saying('Yes.', 100) }, () => notes('A fact.'), {
    trigger: 6,
    keep: 2,
  })
  for (let n = 0; n < 20; n++) await session.run(`Request ${n}`)
  const { createEngine } = await import('@oxbow/core')
  const { emptyState, evolve } = await import('@oxbow/core/internal')
  const state = (await eventsOf(session)).reduce(evolve, emptyState)
  const again = createEngine({ backend, agents: [...engine.agents.values()] })
  expect(await again.session({ user: 'ann', session: 's1' }).state()).toEqual(state)
  await again.stop(0)
})

test('manual compaction: a dry run reports the removal and stores nothing, a real one is an event', async () => {
  const { session, summaries } = await bench({ always: saying('Yes, that is so.', 100) }, () => notes('A fact.'))
  await expect(session.compact()).rejects.toMatchObject({ code: 'unknown_session' })
  for (let n = 0; n < 12; n++) await session.run(`Request ${n}`)
  const plan = await session.compact({ dryRun: true })
  expect(plan).toMatchObject({ reason: 'manual', tier: 'summary', messagesBefore: 24, messagesAfter: 11 })
  expect(summaries()).toHaveLength(0)
  expect(await compactions(session)).toHaveLength(0)
  expect(await session.compact()).toMatchObject({ tier: 'summary', messagesAfter: 11 })
  expect(await compactions(session)).toHaveLength(1)
  expect((await session.state()).messages).toHaveLength(11)
  expect(await session.compact()).toMatchObject({ tier: 'none' })
  expect((await session.run('And on.')).text).toBe('Yes, that is so.')
})

describe('while the summary is written', () => {
  const held = async () => {
    const writing = gate()
    const it = await bench({ always: saying('Yes.', 100) }, [{ ...notes('A fact.'), beforeHeaders: writing }], {
      trigger: 6,
      keep: 2,
    })
    for (let n = 0; n < 3; n++) await it.session.run(`Request ${n}`)
    const running = it.session.submit('And now?', { turnId: 'held' })
    await writing.reached
    await running
    return { ...it, writing }
  }

  test('an interrupt stops the turn at once, and nothing is compacted', async () => {
    const { session, asked } = await held()
    await session.interrupt()
    expect(await session.wait('held')).toMatchObject({ status: 'cancelled' })
    expect(await compactions(session)).toHaveLength(0)
    expect(asked()).toHaveLength(3)
    expect((await session.state()).messages).toHaveLength(7)
  })

  test('new messages and queued turns are not lost', async () => {
    const { session, writing, asked } = await held()
    await session.submit('Be quick!', { whenBusy: 'steer' })
    const next = session.submit('Then this.', { turnId: 'next' })
    await next
    writing.open()
    await session.wait('next')
    expect((await compactions(session))[0]).toMatchObject({ tier: 'summary' })
    const texts = asked().map((it) => textOf(it.messages))
    expect(texts.at(-2)).toContain('Be quick!')
    expect(texts.at(-1)).toContain('Then this.')
  })
})

test('the state of capabilities stays in the prompt', async () => {
  const todos = slot({ name: 'todos', initial: [] as string[], reduce: (list, added: string) => [...list, added] })
  const add = tool({
    name: 'add_todo',
    description: 'Adds a todo.',
    effects: ['read'],
    input: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
    run({ text }, { state }) {
      state.change(todos, String(text))
      return 'added'
    },
  })
  const list: Capability = {
    name: 'todos',
    tools: [add],
    prompt: [{ title: 'todos', text: ({ slots }) => `Open todos: ${slotValue(slots, todos).join('; ')}` }],
  }
  const server = (request: ScriptedRequest) =>
    request.messages.length === 2
      ? saying('', 100, { calls: [{ name: 'add_todo', arguments: { text: 'water the roses' } }] })
      : saying('Yes.', 100)
  const { session, asked } = await bench(server, () => notes('A fact.'), { trigger: 6, keep: 2 }, {}, [list])
  for (let n = 0; n < 6; n++) await session.run(`Request ${n}`)
  expect((await compactions(session)).length).toBeGreaterThan(0)
  expect(String(asked().at(-1)!.messages[0]!.content)).toContain('Open todos: water the roses')
})

describe('implausible token counts of a provider', () => {
  test.each([
    ['above the window', 60_000],
    ['far above what was sent', 25_000],
  ])('%s are ignored: the next turn runs', async (_, tokens) => {
    const { session, asked } = await bench({ always: saying('Hello.', tokens) }, [], { contextWindow: 32_000 })
    for (const text of ['hi', 'and now?', 'still there?']) expect((await session.run(text)).text).toBe('Hello.')
    expect(asked()).toHaveLength(3)
    expect(await compactions(session)).toEqual([])
  })
})

test('middleware sees the summary requests and their model', async () => {
  const seen: (string | undefined)[] = []
  const { session } = await bench(
    { always: saying('Yes.', 100) },
    () => notes('A fact.'),
    { trigger: 6, keep: 2 },
    {
      middleware: [
        {
          name: 'watching',
          onModelCall(request, { summaryBy }, next) {
            seen.push(summaryBy)
            return next(request)
          },
        },
      ],
    },
  )
  for (let n = 0; n < 4; n++) await session.run(`Request ${n}`)
  expect(seen).toEqual([undefined, undefined, undefined, 'test:notes', undefined])
  await session.compact()
  expect(seen.filter((it) => it !== undefined)).toEqual(['test:notes', 'test:notes'])
})
