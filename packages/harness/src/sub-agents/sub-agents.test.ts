import { isEvent, type SessionItem } from '@oxbow/core'
import { eventsOf, gate, until } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { subAgents } from '../index.ts'
import { calls, childrenOf, handOff, sent, spawn, tree, worker } from './sub-agents.fixture.ts'

const helper = (agent: Parameters<typeof subAgents>[0][number]['agent']) => ({ description: 'Helps.', agent })

describe('H10: a task for another agent', () => {
  test('runs in its own session, whose journal names its parent, and its hand-off is the result', async () => {
    const it = await tree(
      {
        lead: [spawn('reader', 'Read the notes.'), { text: 'Told.' }],
        reader: [handOff('Two notes.', { facts: [{ text: 'a note', where: 'notes/1' }], open_questions: ['Whose?'] })],
      },
      (of) => of('lead', { capabilities: [subAgents([helper(of('reader'))])] }),
    )
    expect((await it.root.run('Go.', { turnId: 't1' })).text).toBe('Told.')
    expect(sent(it.model, 'lead')[0]).toMatch(
      /^The agent reader \(agent_\w+\) has ended: done\.\n<data .*>\nstatus: done\nconclusion: Two notes\.\nfacts:\n- a note \(notes\/1\)\nopen questions:\n- Whose\?\n<\/data/,
    )
    const [opened] = await eventsOf(it.root, 'child.opened')
    const [child] = await childrenOf(it.engine, it.root)
    const [first, second] = await eventsOf(child!)
    expect(first).toMatchObject({
      type: 'session.opened',
      parent: { session: 's1', turnId: 't1', callId: opened!.callId },
    })
    expect(second).toMatchObject({ type: 'turn.started', surface: 'agent', input: [{ text: 'Read the notes.' }] })
    expect(await eventsOf(it.root, 'child.closed')).toMatchObject([
      { status: 'done', childTurnId: opened!.childTurnId },
    ])
    // It knows nothing else of the parent.
    expect(sent(it.model, 'reader', 'user')).toEqual(['Read the notes.'])
    expect(it.errors).toEqual([])
  })

  test.each([
    ['empty', [handOff(' ')]],
    ['empty', [{ text: '' }, { text: '' }, { text: '' }]],
    ['cut', Array.from({ length: 3 }, () => ({ text: '{"status":"do', finishReason: 'length' }))],
    ['refused', [{ text: 'No.', finishReason: 'content_filter' }]],
    ['failed', [{ status: 401, body: {} }]],
    ['failed', Array.from({ length: 3 }, () => ({ text: 'All done!' }))],
    ['max_steps', [calls('look', { what: 'a' }), handOff('Half of it.', { status: 'partial' })]],
  ] as const)('that ends %s is not a success, and is reported in the same step', async (status, replies) => {
    const it = await tree({ lead: [spawn('reader'), { text: 'Told.' }], reader: replies }, (of) =>
      of('lead', {
        capabilities: [
          subAgents([helper(of('reader', { tools: [worker('look', ['read'])], limits: { maxSteps: 1 } }))]),
        ],
      }),
    )
    await it.root.run('Go.')
    const [finished] = await eventsOf(it.root, 'call.finished')
    expect(finished).toMatchObject({ status: 'error', error: { code: `child_${status}` } })
    expect(sent(it.model, 'lead')[0]).toContain(`has ended: ${status}.`)
    if (status === 'max_steps') expect(sent(it.model, 'lead')[0]).toContain('Half of it.')
  })

  describe('whose hand-off is longer than a conversation holds', () => {
    const LONG = Array.from({ length: 6_000 }, (_, n) => `line ${n}`).join('\n')
    const all = (text: string) =>
      LONG.split('\n').every((line) => text.includes(`${line}\n`) || text.includes(`${line}<`))
    const build = (of: Parameters<Parameters<typeof tree>[1]>[0]) =>
      of('lead', { capabilities: [subAgents([helper(of('reader'))])] })
    const readAll = (id: string) =>
      Array.from({ length: Math.ceil((LONG.length + 1_000) / 8_000) }, (_, n) => ({
        name: 'read_artifact',
        arguments: { id, offset: n * 8_000 },
      }))
    const pages = (model: Parameters<typeof sent>[0]): string =>
      sent(model, 'lead')
        .flatMap((it) => (it.startsWith('[characters') ? [it.slice(it.indexOf('\n') + 1)] : []))
        .join('')
    const idIn = (request: { messages: readonly { content?: unknown }[] }): string =>
      /read_artifact: \{"id":"([^"]+)"/.exec(JSON.stringify(request.messages).replaceAll('\\"', '"'))![1]!

    test('is shown with a notice that names the artifact with all of it', async () => {
      const it = await tree(
        {
          lead: [spawn('reader'), (request) => ({ calls: readAll(idIn(request)) }), { text: 'Told.' }],
          reader: [handOff(LONG)],
        },
        build,
      )
      await it.root.run('Go.')
      expect(sent(it.model, 'lead')[0]!.length).toBeLessThan(20_000)
      expect(all(pages(it.model))).toBe(true)
    })

    test('from the background has the same notice', async () => {
      const it = await tree(
        {
          lead: [
            spawn('reader', 'Do it.', { background: true }),
            calls('wait_async_results'),
            (request) => ({ calls: readAll(idIn(request)) }),
            { text: 'Told.' },
          ],
          reader: [handOff(LONG)],
        },
        build,
      )
      await it.root.run('Go.')
      const [closed] = await eventsOf(it.root, 'child.closed')
      expect(closed!.text.length).toBeLessThan(20_000)
      expect(all(pages(it.model))).toBe(true)
    })

    test('in its last step is an error that names the artifact', async () => {
      const it = await tree(
        {
          lead: [
            spawn('reader'),
            (request) => ({
              calls: [
                {
                  name: 'task_output',
                  arguments: { id: /\((agent_\w+)\)/.exec(JSON.stringify(request.messages))![1] },
                },
              ],
            }),
            (request) => ({ calls: readAll(idIn(request)) }),
            { text: 'Told.' },
          ],
          reader: [calls('look', { what: 'a' }), handOff(LONG, { status: 'partial' })],
        },
        (of) =>
          of('lead', {
            capabilities: [
              subAgents([helper(of('reader', { tools: [worker('look', ['read'])], limits: { maxSteps: 1 } }))]),
            ],
          }),
      )
      await it.root.run('Go.')
      expect(sent(it.model, 'lead')[0]).toMatch(/characters omitted\. Use task_output to read them\.\]/)
      expect(all(pages(it.model))).toBe(true)
    })
  })

  test('may continue in the background: its result joins the next step, once', async () => {
    const held = gate()
    const it = await tree(
      {
        lead: [
          spawn('reader', 'Read.', { background: true }),
          calls('wait_async_results'),
          { text: 'Told.' },
          { text: 'Again.' },
        ],
        reader: [{ ...handOff('Two notes.'), hold: { atChunk: 1, gate: held } }],
      },
      (of) => of('lead', { capabilities: [subAgents([helper(of('reader'))])] }),
    )
    const running = it.root.run('Go.')
    await held.reached
    await until(async () => (await eventsOf(it.root, 'call.started')).length === 2)
    held.open()
    expect((await running).text).toBe('Told.')
    expect(sent(it.model, 'lead')[0]).toContain('works in the background')
    const results = () => sent(it.model, 'lead', 'user').filter((text) => text.includes('Two notes.'))
    expect(results()).toHaveLength(1)
    await it.root.run('And?')
    expect(results()).toHaveLength(1)
  })

  test('whose parent has ended meanwhile is reported in the next turn', async () => {
    const held = gate()
    const it = await tree(
      {
        lead: [spawn('reader', 'Read.', { background: true }), { text: 'It is on its way.' }, { text: 'Told.' }],
        reader: [{ ...handOff('Two notes.'), hold: { atChunk: 1, gate: held } }],
      },
      (of) => of('lead', { capabilities: [subAgents([helper(of('reader'))])] }),
    )
    await it.root.run('Go.')
    held.open()
    await until(async () => (await eventsOf(it.root, 'child.closed')).length === 1)
    await it.root.run('And?')
    expect(sent(it.model, 'lead', 'user').filter((text) => text.includes('Two notes.'))).toHaveLength(1)
  })

  test('that takes long continues in the background', async () => {
    const held = gate()
    const it = await tree(
      {
        lead: [spawn('reader'), { text: 'Waiting.' }],
        reader: [{ ...handOff('Two notes.'), hold: { atChunk: 1, gate: held } }],
      },
      (of) => of('lead', { capabilities: [subAgents([helper(of('reader'))], { backgroundAfterMs: 50 })] }),
    )
    await it.root.run('Go.')
    expect(sent(it.model, 'lead')[0]).toContain('works in the background')
    held.open()
    await until(async () => (await eventsOf(it.root, 'child.closed')).length === 1)
    expect(await eventsOf(it.root, 'child.closed')).toMatchObject([{ status: 'done', input: [{ type: 'text' }] }])
  })

  test('can be followed up: the agent keeps its history, or reads the message while it works', async () => {
    const held = gate()
    const send = (message: string) => (request: { messages: readonly { content?: unknown }[] }) => {
      const id = /agent_\w{20}/.exec(JSON.stringify(request.messages))![0]
      return calls('agent_send', { id, message })
    }
    const it = await tree(
      {
        lead: [spawn('reader', 'Read.'), send('And the rest?'), { text: 'Told.' }],
        reader: [handOff('Two notes.'), { ...handOff('Three.'), hold: { atChunk: 1, gate: held } }],
      },
      (of) => of('lead', { capabilities: [subAgents([helper(of('reader'))])] }),
    )
    held.open()
    await it.root.run('Go.')
    expect(sent(it.model, 'lead')[1]).toContain('Three.')
    expect(sent(it.model, 'reader', 'user')).toEqual(['Read.', 'And the rest?'])
    expect(await childrenOf(it.engine, it.root)).toHaveLength(1)
    expect(await eventsOf(it.root, 'child.closed')).toHaveLength(2)
  })

  test('is shown to readers of the root, with the agents and sessions in between', async () => {
    const it = await tree(
      {
        lead: [spawn('editor'), { text: 'Told.' }],
        editor: [spawn('reader'), handOff('Edited.')],
        reader: [calls('look', { what: 'x' }), handOff('Read.')],
      },
      (of) => {
        const reader = of('reader', { tools: [worker('look', ['read'])] })
        return of('lead', {
          capabilities: [subAgents([helper(of('editor', { capabilities: [subAgents([helper(reader)])] }))])],
        })
      },
    )
    const items: SessionItem[] = []
    for await (const item of it.root.stream('Go.')) items.push(item)
    const shown = items.flatMap((item) => (item.type === 'child.delta' ? [item] : []))
    const call = shown.find(({ item }) => isEvent(item) && item.type === 'call.finished' && item.status === 'success')
    expect(call?.source.agents).toEqual(['lead', 'editor', 'reader'])
    const [editor] = await childrenOf(it.engine, it.root)
    const [reader] = await childrenOf(it.engine, editor!)
    expect(call?.source.sessions).toEqual(['s1', editor!.key.session, reader!.key.session])
    // Each event of a child appears once, and none after the end of its parent.
    const events = shown.map(({ item, source }) => `${source.agents.at(-1)} ${isEvent(item) ? item.seq : ''}`)
    expect(new Set(events).size).toBe(events.length)
  })

  test('accepts messages only from its parent', async () => {
    const it = await tree({ lead: [spawn('reader'), { text: 'Told.' }], reader: [handOff('Read.')] }, (of) =>
      of('lead', { capabilities: [subAgents([helper(of('reader'))])] }),
    )
    await it.root.run('Go.')
    const [child] = await childrenOf(it.engine, it.root)
    await expect(child!.run('Delete it all.')).rejects.toMatchObject({ code: 'child_session' })
  })
})

test('B8: one failing agent of several in parallel does not stop the others, and its task is reported as failed', async () => {
  const held = gate()
  const three = ['a', 'b', 'c'].map((name) => ({
    name: 'agent_spawn',
    arguments: { agent: name, task: `Do ${name}.`, background: true },
  }))
  const it = await tree(
    {
      lead: [{ calls: three }, calls('wait_async_results'), { text: 'Two of three.' }],
      a: [{ ...handOff('A is done.'), hold: { atChunk: 1, gate: held } }],
      b: [{ status: 401, body: {} }],
      c: [{ ...handOff('C is done.'), hold: { atChunk: 1, gate: held } }],
    },
    (of) => of('lead', { capabilities: [subAgents(['a', 'b', 'c'].map((name) => helper(of(name))))] }),
  )
  const running = it.root.run('Go.')
  // All three work at once: two are held while the third has already failed.
  await until(async () => (await eventsOf(it.root, 'child.closed')).some((event) => event.status === 'failed'))
  await until(() => ['a', 'c'].every((name) => it.model.requests.some(({ model }) => model === name)))
  held.open()
  expect((await running).text).toBe('Two of three.')
  const told = sent(it.model, 'lead', 'user').join('\n')
  for (const it of ['A is done.', 'C is done.', 'The agent b']) expect(told.split(it)).toHaveLength(2)
  expect(told).toMatch(/The agent b \(agent_\w+\) has ended: failed\./)
})

describe('H10: stopping', () => {
  test('stopping the root stops the whole tree, in other processes too', async () => {
    const held = gate()
    const it = await tree(
      {
        lead: [spawn('editor', 'Edit.', { background: true }), spawn('editor')],
        editor: [spawn('reader'), spawn('reader')],
        reader: [
          { ...handOff('Read.'), hold: { atChunk: 1, gate: held } },
          { ...handOff('Read.'), hold: { atChunk: 1, gate: held } },
        ],
      },
      (of) => {
        const reader = of('reader')
        return of('lead', {
          capabilities: [subAgents([helper(of('editor', { capabilities: [subAgents([helper(reader)])] }))])],
        })
      },
      { store: 'sqlite' },
    )
    const running = it.root.run('Go.', { turnId: 't1' })
    await until(() => it.model.requests.filter((request) => request.model === 'reader').length === 2)
    await it.another().session(it.root.key).interrupt({ turnId: 't1' })
    expect((await running).status).toBe('cancelled')
    await until(async () => (await eventsOf(it.root, 'child.closed')).length === 2)
    for (const editor of await childrenOf(it.engine, it.root)) {
      const sessions = [editor, ...(await childrenOf(it.engine, editor))]
      expect(sessions).toHaveLength(2)
      for (const session of sessions) {
        expect(await eventsOf(session, 'turn.cancelled')).toHaveLength(1)
        expect((await session.state()).turn).toBeUndefined()
      }
    }
    // Agents stopped together are not reported to each other.
    expect((await eventsOf(it.root, 'child.closed')).filter((event) => event.input !== undefined)).toEqual([])
  })

  test('a root that fails stops them too; one that finishes lets the background continue', async () => {
    const held = gate()
    const it = await tree(
      {
        lead: [spawn('reader', 'Read.', { background: true }), { status: 401, body: {} }],
        reader: [{ ...handOff('Read.'), hold: { atChunk: 1, gate: held } }],
      },
      (of) => of('lead', { capabilities: [subAgents([helper(of('reader'))])] }),
    )
    await expect(it.root.run('Go.')).rejects.toMatchObject({ code: 'auth' })
    await until(async () => (await eventsOf(it.root, 'child.closed')).length === 1)
    expect(await eventsOf(it.root, 'child.closed')).toMatchObject([{ status: 'cancelled' }])
  })

  test('one agent is stopped by its id, and its parent is notified', async () => {
    const held = gate()
    const it = await tree(
      {
        lead: [
          spawn('reader', 'Read.', { background: true }),
          ({ messages }) => calls('task_cancel', { id: /agent_\w{20}/.exec(JSON.stringify(messages))![0] }),
          calls('wait_async_results'),
          { text: 'Told.' },
        ],
        reader: [{ ...handOff('Read.'), hold: { atChunk: 1, gate: held } }],
      },
      (of) => of('lead', { capabilities: [subAgents([helper(of('reader'))])] }),
    )
    await it.root.run('Go.')
    expect(sent(it.model, 'lead', 'user').join('\n')).toContain('has ended: cancelled.')
  })
})

describe('H10: limits of a tree', () => {
  test('depth', async () => {
    const it = await tree(
      {
        lead: [spawn('editor'), { text: 'Told.' }],
        editor: [spawn('reader'), handOff('Done alone.')],
        reader: [],
      },
      (of) => {
        const editor = of('editor', { capabilities: [subAgents([helper(of('reader'))])] })
        return of('lead', { capabilities: [subAgents([helper(editor)], { maxDepth: 1 })] })
      },
    )
    await it.root.run('Go.')
    expect(sent(it.model, 'editor')[0]).toContain('Tasks may be passed on 1 times')
    expect(it.model.requests.filter((request) => request.model === 'reader')).toEqual([])
  })

  test('the number of agents counts all levels', async () => {
    const it = await tree(
      {
        lead: [spawn('editor'), spawn('editor'), { text: 'Told.' }],
        editor: [spawn('reader'), handOff('Done.')],
        reader: [handOff('Read.')],
      },
      (of) => {
        const editor = of('editor', { capabilities: [subAgents([helper(of('reader'))])] })
        return of('lead', { capabilities: [subAgents([helper(editor)], { maxChildren: 2 })] })
      },
    )
    await it.root.run('Go.')
    expect(sent(it.model, 'lead')[1]).toContain('2 of 2 agents have been started')
  })

  test.each([
    [{ tokens: 50 }, 'tokens are used', ['a']],
    [{ toolCalls: 3 }, 'tool calls are used', ['a', 'b']],
  ])('the budget %j of the root is shared by all members', async (budget, why, expected) => {
    const usage = { prompt_tokens: 15, completion_tokens: 5 }
    const ran: string[] = []
    const it = await tree(
      {
        lead: [
          { ...spawn('editor'), usage },
          { text: 'Told.', usage },
        ],
        editor: [
          { ...calls('look', { what: 'a' }), usage },
          { ...calls('look', { what: 'b' }), usage },
          { ...calls('look', { what: 'c' }), usage },
          { ...handOff('Done.'), usage },
        ],
      },
      (of) =>
        of('lead', {
          limits: { budget },
          capabilities: [subAgents([helper(of('editor', { tools: [worker('look', ['read'], ran)] }))])],
        }),
    )
    await expect(it.root.run('Go.')).rejects.toMatchObject({ code: 'budget_exceeded' })
    expect(ran).toEqual(expected)
    const [child] = await childrenOf(it.engine, it.root)
    expect(await eventsOf(child!, 'turn.failed')).toMatchObject([{ error: { message: expect.stringContaining(why) } }])
  })
})

describe('H10: declarations', () => {
  test('a name identifies one agent', async () => {
    const build = (second: object) =>
      tree({}, (of) => {
        const one = of('reader')
        return of('lead', { capabilities: [subAgents([helper(one), { ...helper(of('reader')), ...second }])] })
      })
    await expect(build({ from: 'agents/reader.md' })).rejects.toThrow(
      'two agents are named reader: in code and agents/reader.md',
    )
    const shadowed = tree({}, (of) => [of('reader'), of('lead', { capabilities: [subAgents([helper(of('reader'))])] })])
    await expect(shadowed).rejects.toThrow('two agents are named reader: one of the engine, one of agent lead')
  })
})
