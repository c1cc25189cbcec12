// The authority of a child, as the engine applies it. The gate's tests in core cover the whole table.
import type { Agent, Mode, OxbowError, Tool } from '@oxbow/core'
import { tool } from '@oxbow/core'
import { MODES } from '@oxbow/core/internal'
import { eventsOf, gate, until } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { subAgents } from '../index.ts'
import { calls, childrenOf, handOff, sent, spawn, tree, worker } from './sub-agents.fixture.ts'

type Verdict = 'allow' | 'ask' | 'deny'
type Kind = 'none' | 'allow' | 'ask' | 'deny'
const EFFECTS = ['read', 'write'] as const
const KINDS: readonly Kind[] = ['none', 'allow']
const STRENGTH = { allow: 0, ask: 1, deny: 2 } as const

/** The decision of one agent alone, computed apart from the gate. */
function alone(mode: Mode, effect: (typeof EFFECTS)[number], rule: Kind): Verdict {
  const free = (): Verdict => {
    if (rule === 'deny' || (mode === 'explore' && effect !== 'read')) return 'deny'
    if (rule === 'ask') return 'ask'
    if (mode === 'bypass' || effect === 'read') return 'allow'
    return rule === 'allow' ? 'allow' : 'ask'
  }
  const verdict = free()
  return verdict === 'ask' && mode === 'dont-ask' ? 'deny' : verdict
}

interface Case {
  readonly parent: Mode
  readonly child: Mode
  readonly effect: (typeof EFFECTS)[number]
  readonly above: Kind
  readonly below: Kind
}

const all: Case[] = MODES.flatMap((parent) =>
  MODES.flatMap((child) =>
    EFFECTS.flatMap((effect) =>
      KINDS.flatMap((above) => KINDS.map((below) => ({ parent, child, effect, above, below }))),
    ),
  ),
)

const rules = (kind: Kind): object => (kind === 'none' ? {} : { [kind]: ['act'] })

/** Both agents have the tool, so that rules of both can name it. */
function family(of: (name: string, more?: object) => Agent, it: Case, name: string): Agent {
  const act = worker('act', [it.effect])
  const child = of('child', { mode: it.child, tools: [act], ...rules(it.below) })
  return of(name, {
    mode: it.parent,
    tools: [act],
    ...rules(it.above),
    capabilities: [subAgents([{ description: 'Acts.', agent: child }])],
  })
}

describe('H10: authority', () => {
  // Each parent has its own engine; its children run one after the other in one turn each.
  test.each(MODES.flatMap((parent) => EFFECTS.map((effect) => [parent, effect] as const)))(
    'under a parent in %s, a call that can %s has the strictest verdict of both',
    { timeout: 60_000 },
    async (parent, effect) => {
      const wrong: string[] = []
      for (const it of all.filter((one) => one.parent === parent && one.effect === effect)) {
        const made = await tree(
          {
            lead: [spawn('child', 'Act.', { background: true }), { text: 'Told.' }],
            child: [calls('act', { what: 'x' }), handOff('Done.')],
          },
          (of) => family(of, it, 'lead'),
        )
        await made.root.run('Go.')
        const [child] = await childrenOf(made.engine, made.root)
        for await (const item of child!.follow({ after: 0 })) if (item.type === 'call.decided') break
        const [decided] = await eventsOf(child!, 'call.decided')
        const verdicts = [alone(parent, effect, it.above), alone(it.child, effect, it.below)]
        const expected = verdicts.reduce((a, b) => (STRENGTH[a] >= STRENGTH[b] ? a : b))
        if (decided!.decision !== expected) wrong.push(`${JSON.stringify(it)}: ${decided!.decision}, not ${expected}`)
        await made.engine.stop(0)
      }
      expect(wrong).toEqual([])
    },
  )

  /** The result of the child's one call, with the lead's `tools` and the rest as given. */
  async function decision(given: {
    lead?: { tools?: readonly Tool[]; deny?: readonly string[] }
    options?: Parameters<typeof subAgents>[1]
    effects?: Tool['effects']
    what?: string
    child?: object
  }) {
    const it = await tree(
      {
        lead: [spawn('child'), { text: 'Told.' }],
        child: [calls('act', { what: given.what ?? 'x' }), handOff('Done.')],
      },
      (of) => {
        const child = of('child', {
          tools: [worker('act', given.effects ?? ['write'])],
          mode: 'bypass',
          ...given.child,
        })
        return of('lead', {
          mode: 'bypass',
          ...given.lead,
          capabilities: [subAgents([{ description: 'Acts.', agent: child }], given.options)],
        })
      },
    )
    await it.root.run('Go.')
    const [child] = await childrenOf(it.engine, it.root)
    const [decided] = await eventsOf(child!, 'call.decided')
    return { decided: decided!, it, child: child! }
  }

  test('is the intersection of effects, not of names: a child’s own tool runs unless its effects exceed those above', async () => {
    expect((await decision({ lead: { tools: [worker('other', ['write'])] } })).decided.decision).toBe('allow')
    const { decided, it } = await decision({})
    expect(decided).toMatchObject({ decision: 'deny', rule: 'effects:write' })
    expect(sent(it.model, 'child')[0]).toContain('The tool can write. So it is for lead, which gave the task.')
    expect(
      (await decision({ lead: { tools: [worker('other', ['write'])] }, effects: ['write', 'net'] })).decided.rule,
    ).toBe('effects:net')
    expect((await decision({ effects: ['read'] })).decided.decision).toBe('allow')
  })

  test('excludes effects whose only tools are denied above: by definition, by turn, or by a missing permission', async () => {
    const ran: string[] = []
    const writes = worker('own_write', ['write'])
    const child = (of: (name: string, more: object) => Agent) =>
      subAgents([{ description: 'x', agent: of('child', { mode: 'bypass', tools: [worker('act', ['write'], ran)] }) }])
    const cases = [
      { lead: { tools: [writes], deny: ['own_write'] } },
      { lead: { tools: [writes], deny: ['own_*'] } },
      { lead: { tools: [writes] }, deny: ['own_write'] },
      { lead: { tools: [{ ...writes, permission: 'notes:write' }] } },
    ]
    for (const { lead, deny } of cases) {
      const it = await tree(
        { lead: [spawn('child'), { text: 'Told.' }], child: [calls('act', { what: 'x' }), handOff('Done.')] },
        (of) => of('lead', { mode: 'bypass', ...lead, capabilities: [child(of)] }),
      )
      await it.root.run('Go.', deny === undefined ? {} : { deny })
      const [below] = await childrenOf(it.engine, it.root)
      expect(await eventsOf(below!, 'call.decided')).toMatchObject([{ decision: 'deny', rule: 'effects:write' }])
    }
    expect(ran).toEqual([])
    // A rule for some calls does not affect the others.
    const some = { tools: [writes], deny: ['own_write(rm)'] }
    expect((await decision({ lead: some })).decided.decision).toBe('allow')
  })

  test('can be extended explicitly, in effects and in rules for the child’s tools', async () => {
    const grant = { effects: ['write'] as const, allow: ['act(a)'] }
    expect((await decision({ options: { grant } })).decided.decision).toBe('allow')
    for (const [what, expected] of [
      ['a', 'allow'],
      ['b', 'ask'],
    ] as const) {
      const { decided } = await decision({ options: { grant }, what, lead: { mode: 'default' } as object })
      expect(decided.decision).toBe(expected)
    }
  })

  test('deny rules of every level apply, by the patterns of the child’s own tool', async () => {
    const lead = { tools: [worker('act', ['write'])], deny: ['act(rm)'] }
    expect((await decision({ lead, what: 'rm -r' })).decided).toMatchObject({ decision: 'deny', rule: 'deny:act(rm)' })
    expect((await decision({ lead, what: 'ls' })).decided.decision).toBe('allow')
    const it = await tree(
      {
        lead: [spawn('editor'), { text: 'Told.' }],
        editor: [spawn('child'), handOff('Done.')],
        child: [calls('act', { what: 'x' }), handOff('Done.')],
      },
      (of) => {
        const act = worker('act', ['write'])
        const child = of('child', { mode: 'bypass', tools: [act] })
        const editor = of('editor', {
          mode: 'bypass',
          tools: [act],
          capabilities: [subAgents([{ description: 'x', agent: child }])],
        })
        return of('lead', {
          mode: 'bypass',
          tools: [act],
          capabilities: [subAgents([{ description: 'x', agent: editor }])],
        })
      },
    )
    // The turn's own rule, two levels up.
    await it.root.run('Go.', { deny: ['act'] })
    const [editor] = await childrenOf(it.engine, it.root)
    const [child] = await childrenOf(it.engine, editor!)
    expect(await eventsOf(child!, 'call.decided')).toMatchObject([{ decision: 'deny', rule: 'deny:act' }])
  })

  test('deny rules of every level are passed to remote agents that the child calls', async () => {
    let seen: readonly string[] = []
    const elsewhere = tool({
      name: 'elsewhere',
      description: 'Hands on.',
      effects: ['delegate'],
      input: {},
      run: (_, { denyRules }) => {
        seen = denyRules
        return 'ok'
      },
    })
    const it = await tree(
      { lead: [spawn('child'), { text: 'Told.' }], child: [calls('elsewhere'), handOff('Done.')] },
      (of) => {
        const act = worker('act', ['write'])
        const child = of('child', { tools: [act, elsewhere], mode: 'bypass', deny: ['act(b)'] })
        const capabilities = [subAgents([{ description: 'Acts.', agent: child }])]
        return of('lead', { mode: 'bypass', tools: [act], deny: ['act(a)'], capabilities })
      },
    )
    await it.root.run('Go.')
    expect([...seen].sort()).toEqual(['act(a)', 'act(b)'])
  })

  test('a message from a turn with less authority becomes a separate task with that authority', async () => {
    const held = gate()
    const ran: string[] = []
    const send = ({ messages }: { messages: readonly { content?: unknown }[] }) =>
      calls('agent_send', { id: /agent_\w{20}/.exec(JSON.stringify(messages))![0], message: 'Write now.' })
    const it = await tree(
      {
        lead: [spawn('child', 'Act.', { background: true }), { text: 'Begun.' }, send, { text: 'Told.' }],
        child: [
          { ...handOff('Looked.'), hold: { atChunk: 1, gate: held } },
          calls('act', { what: 'x' }),
          handOff('Tried.'),
        ],
      },
      (of) => {
        const act = worker('act', ['write'], ran)
        const child = of('child', { tools: [act], mode: 'bypass' })
        return of('lead', {
          mode: 'bypass',
          tools: [act],
          capabilities: [subAgents([{ description: 'x', agent: child }])],
        })
      },
    )
    await it.root.run('Go.')
    const second = it.root.run('Go on.', { mode: 'explore' })
    const [child] = await childrenOf(it.engine, it.root)
    await until(async () => (await eventsOf(child!, 'turn.started')).length === 2)
    held.open()
    await second
    expect(ran).toEqual([])
    expect(await eventsOf(child!, 'call.decided')).toMatchObject([{ decision: 'deny', rule: 'mode:explore' }])
  })

  test('a rule is suggested only for scopes that can use it: not for a session whose parents would ask again', async () => {
    const act = worker('act', ['write'])
    const scopesUnder = async (mode: Mode) => {
      const it = await tree(
        { lead: [spawn('child'), { text: 'Told.' }], child: [calls('act', { what: 'x' }), handOff('Done.')] },
        (of) => {
          const child = of('child', { tools: [act] })
          return of('lead', { mode, tools: [act], capabilities: [subAgents([{ description: 'x', agent: child }])] })
        },
      )
      const { approvals } = await it.root.run('Go.')
      const { approvalId, suggestions, scopes = ['session', 'user', 'project'] } = approvals[0]!
      expect(suggestions).toEqual(['act(x)'])
      for (const scope of ['session', 'user', 'project'] as const) {
        const checked = it.root.checkDecision(approvalId, { verdict: 'approved', remember: { rule: 'act(x)', scope } })
        const possible = await checked.then(
          () => true,
          (error: OxbowError) => error.code !== 'rule_invalid',
        )
        expect([scope, possible]).toEqual([scope, scopes.includes(scope)])
      }
      return scopes
    }
    expect(await scopesUnder('default')).toEqual(['user', 'project'])
    expect(await scopesUnder('bypass')).toEqual(['session', 'user', 'project'])
  })

  test('a rule accepted in a child’s session allows calls there only, and not against questions of its parents', async () => {
    const send = ({ messages }: { messages: readonly { content?: unknown }[] }) =>
      calls('agent_send', { id: /agent_\w{20}/.exec(JSON.stringify(messages))![0], message: 'Again.' })
    const act = worker('act', ['write'])
    const scripts = () => ({
      lead: [spawn('child'), send, spawn('child'), { text: 'Told.' }],
      child: Array.from({ length: 6 }, (_, n) => (n % 2 === 0 ? calls('act', { what: 'x' }) : handOff('Done.'))),
    })
    const asked = async (mode: Mode): Promise<number> => {
      const it = await tree(scripts(), (of) => {
        const child = of('child', { tools: [act] })
        return of('lead', { mode, tools: [act], capabilities: [subAgents([{ description: 'Acts.', agent: child }])] })
      })
      let result = await it.root.run('Go.', { turnId: 't1' })
      const remember = { rule: 'act(x)', scope: 'session' as const }
      for (let n = 0; result.status === 'paused'; n++) {
        const decision = { verdict: 'approved' as const, ...(n === 0 && { remember }) }
        const { approvalId } = result.approvals[0]!
        // A rule that cannot allow any such call may be refused at once; the approval stays valid.
        await it.root.decide(approvalId, decision).catch((error: OxbowError) => {
          if (error.code !== 'rule_invalid') throw error
          return it.root.decide(approvalId, { verdict: 'approved' })
        })
        result = await it.root.wait('t1')
      }
      expect((await it.root.state()).rules).toEqual([])
      return (await eventsOf(it.root, 'approval.requested')).length
    }
    // Where the parent asks itself, it asks each time; otherwise the first session is asked once, the second again.
    expect(await asked('default')).toBe(3)
    expect(await asked('bypass')).toBe(2)
  })
})
