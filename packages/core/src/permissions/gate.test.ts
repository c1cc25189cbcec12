import { describe, expect, test } from 'vitest'
import { grants } from '../authority.ts'
import { type Effect, type Principal, type Tool, type ToolDefinition, tool } from '../index.ts'
import { MODES, type Mode } from '../tools/mode.ts'
import { authorise, type Policy } from './gate.ts'
import { checkRule, namesTool, parseRule } from './rules.ts'

const make = (effects: readonly Effect[], more: Partial<ToolDefinition> = {}) =>
  tool({ name: 'subject', description: 's', effects, input: {}, run: () => '', ...more })
const policyOf = (mode: Mode, rules: Partial<Record<'allow' | 'ask' | 'deny', string[]>> = {}): Policy => ({
  mode,
  allow: (rules.allow ?? []).map(parseRule),
  ask: (rules.ask ?? []).map(parseRule),
  deny: (rules.deny ?? []).map(parseRule),
})

describe('H2: the truth table of the gate', () => {
  const kinds = ['none', 'allow', 'ask', 'deny', 'allow+ask', 'allow+deny', 'ask+deny'] as const
  const effects: readonly (readonly Effect[])[] = [
    ['read'],
    ['write'],
    ['exec'],
    ['net'],
    ['ask'],
    ['delegate'],
    ['read', 'write'],
  ]
  const tools = ['plain', 'edits', 'approval', 'check:allow', 'check:ask', 'check:deny', 'permission'] as const
  const callers: readonly Principal[] = [{ user: 'a' }, { user: 'a', permissions: ['x:*'] }]

  /** The order of the design, written down once more and independently: the strongest word that anything says. */
  function expected(mode: Mode, kind: string, effect: readonly Effect[], feature: string, caller: Principal): string {
    const reads = effect.every((it) => it === 'read')
    const asked = (decision: string): string =>
      decision === 'ask' && (mode === 'dont-ask' || (mode === 'explore' && !reads)) ? 'deny' : decision
    if (feature === 'permission' && caller.permissions === undefined) return 'deny'
    if (kind.includes('deny')) return 'deny'
    if (kind.includes('ask')) return asked('ask')
    if (feature === 'approval') return asked('ask')
    if (feature.startsWith('check:')) return asked(feature.slice('check:'.length))
    if (mode === 'bypass') return 'allow'
    if (mode === 'explore' && !reads) return 'deny'
    if (mode === 'accept-edits' && feature === 'edits') return 'allow'
    if (kind.includes('allow') || reads) return 'allow'
    return asked('ask')
  }

  test('holds for every mode, kind of rule, effect, tool and caller', async () => {
    let rows = 0
    const wrong: string[] = []
    for (const mode of MODES)
      for (const kind of kinds)
        for (const effect of effects)
          for (const feature of tools)
            for (const principal of callers) {
              rows += 1
              const rules = Object.fromEntries(kind.split('+').map((it) => [it, ['subject']]))
              const subject = make(effect, {
                ...(feature === 'edits' && { edits: true }),
                ...(feature === 'approval' && { approval: 'always' as const }),
                ...(feature.startsWith('check:') && {
                  check: () => ({ decision: feature.slice(6) as 'allow' | 'ask' | 'deny', reason: 'own' }),
                }),
                ...(feature === 'permission' && { permission: 'x:y:z' }),
              })
              const { decision, rule, reason } = await authorise({
                tool: subject,
                arguments: {},
                principal,
                policy: policyOf(mode, kind === 'none' ? {} : rules),
              })
              const want = expected(mode, kind, effect, feature, principal)
              if (decision !== want) wrong.push(`${mode} ${kind} ${effect.join()} ${feature}: ${decision}, not ${want}`)
              expect(rule).not.toBe('')
              expect(reason).not.toBe('')
            }
    expect(rows).toBe(MODES.length * kinds.length * effects.length * tools.length * callers.length)
    expect(wrong).toEqual([])
  })

  test('in dont-ask nothing ever asks', async () => {
    for (const kind of kinds)
      for (const effect of effects) {
        const rules = kind === 'none' ? {} : Object.fromEntries(kind.split('+').map((it) => [it, ['*']]))
        const request = {
          tool: make(effect),
          arguments: {},
          principal: { user: 'a' },
          policy: policyOf('dont-ask', rules),
        }
        expect((await authorise(request)).decision).not.toBe('ask')
      }
  })

  test('a pattern is interpreted by the tool, which gets the kind of rule and may answer later', async () => {
    const seen: string[] = []
    const subject = make(['write'], {
      matches: async (pattern, input, kind) => {
        seen.push(`${kind} ${pattern}`)
        return input.city === pattern
      },
    })
    const decide = async (city: string) => {
      const { decision } = await authorise({
        tool: subject,
        arguments: { city },
        principal: { user: 'a' },
        policy: policyOf('default', { allow: ['subject(Paris)'], deny: ['subject(Rome)'] }),
      })
      return decision
    }
    expect([await decide('Paris'), await decide('Rome'), await decide('Oslo')]).toEqual(['allow', 'deny', 'ask'])
    expect(seen).toContain('deny Rome')
  })

  test.each([
    ['deny', 'deny'],
    ['ask', 'ask'],
    ['allow', 'ask'],
  ] as const)(
    'a pattern of %s whose tool answers neither true nor false counts for the stricter: %s',
    async (kind, decision) => {
      const subject = make(['write'], { matches: (() => 'yes') as never })
      const request = {
        tool: subject,
        arguments: {},
        principal: { user: 'a' },
        policy: policyOf('default', { [kind]: ['subject(x)'] }),
      }
      expect((await authorise(request)).decision).toBe(decision)
    },
  )

  test('a check without a decision denies, even where nothing else restricts the call', async () => {
    const subject = make(['write'], { check: (() => ({ decision: 'alow', reason: 'typo' })) as never })
    const request = { tool: subject, arguments: {}, principal: { user: 'a' }, policy: policyOf('bypass') }
    expect(await authorise(request)).toMatchObject({ decision: 'deny', rule: 'check:subject' })
  })
})

describe('what a tool says about its calls', () => {
  test('check and matches get the mode, in one object for each decision', async () => {
    const seen: unknown[] = []
    const subject = make(['write'], {
      check: (_, context) => void seen.push(context),
      matches: (_pattern, _input, _kind, context) => seen.push(context) === 0,
    })
    const policy = policyOf('accept-edits', { deny: ['subject(x)'], allow: ['subject(y)'] })
    for (const decision of ['ask', 'ask'])
      expect((await authorise({ tool: subject, arguments: {}, principal: { user: 'a' }, policy })).decision).toBe(
        decision,
      )
    expect(seen[0]).toEqual({ mode: 'accept-edits' })
    expect(seen).toHaveLength(6)
    expect(new Set(seen).size).toBe(2)
  })

  test.each([
    ['0', () => 0],
    ['undefined', () => undefined],
    ['null', () => null],
    ['"maybe"', () => 'maybe'],
    ['the error', () => Promise.reject(new Error('no such file'))],
  ])('a matches that answers %s for a deny rule is a fault that denies, in every mode', async (shown, matches) => {
    const subject = make(['write'], { matches: matches as never, check: () => ({ decision: 'allow', reason: 'own' }) })
    for (const mode of MODES) {
      const request = { tool: subject, arguments: {}, principal: { user: 'a' } }
      const denied = await authorise({ ...request, policy: policyOf(mode, { deny: ['subject(x)'] }) })
      expect(denied).toMatchObject({ decision: 'deny', rule: 'deny:subject(x)' })
      expect(denied.reason).toContain(`matches of subject answered`)
      expect(denied.reason).toContain(shown)
      const asked = await authorise({ ...request, policy: policyOf('bypass', { ask: ['subject(x)'] }) })
      expect(asked.decision).toBe('ask')
      const notAllowed = await authorise({
        ...request,
        tool: make(['write'], { matches: matches as never }),
        policy: policyOf('default', { allow: ['subject(x)'] }),
      })
      expect(notAllowed.decision).toBe('ask')
    }
  })
})

describe('a rule for a tool that reads no patterns can look at one argument', () => {
  const push = tool({
    name: 'git__push',
    description: 'Pushes.',
    effects: ['net'],
    input: {
      type: 'object',
      properties: { branch: { type: 'string' }, force: { type: 'boolean' }, paths: { type: 'array' }, to: {} },
    },
    run: () => '',
  })
  const decide = async (rules: Parameters<typeof policyOf>[1], given: Record<string, unknown>, mode: Mode = 'bypass') =>
    (await authorise({ tool: push, arguments: given, principal: { user: 'a' }, policy: policyOf(mode, rules) }))
      .decision

  test.each([
    ['branch=main', { branch: 'main' }, 'deny'],
    ['branch=release/*', { branch: 'release/1' }, 'deny'],
    ['branch=main', { branch: 'mainline' }, 'allow'],
    ['branch=main', {}, 'allow'],
    ['branch=*', { branch: '' }, 'deny'],
    ['force=true', { force: true }, 'deny'],
    ['force=true', { force: false }, 'allow'],
    ['paths=/etc/*', { paths: ['/tmp/x', '/etc/passwd'] }, 'deny'],
    ['to=x', { to: { host: 'x' } }, 'ask'],
    ['to=a=b', { to: 'a=b' }, 'deny'],
  ])('deny git__push(%s) and %j: %s', async (pattern, given, decision) => {
    expect(await decide({ deny: [`git__push(${pattern})`] }, given)).toBe(decision)
  })

  test.each([
    ['branch=topic/*', { branch: 'topic/x', force: true }, 'allow'],
    ['branch=topic/*', { branch: 'main' }, 'ask'],
    ['branch=topic/*', {}, 'ask'],
    ['paths=/srv/app/*', { paths: ['/srv/app/a', '/srv/app/b'] }, 'allow'],
    ['paths=/srv/app/*', { paths: ['/srv/app/a', '/etc/b'] }, 'ask'],
    ['paths=/srv/app/*', { paths: [] }, 'ask'],
    ['to=*', { to: {} }, 'ask'],
  ])('allow git__push(%s) and %j: %s', async (pattern, given, decision) => {
    expect(await decide({ allow: [`git__push(${pattern})`] }, given, 'default')).toBe(decision)
  })

  test('one that names no argument of the tool is an error, and denies every call', async () => {
    expect(() => checkRule(parseRule('git__push(brunch=main)'), 'deny', [push])).toThrow(
      'git__push has no argument "brunch". Arguments: branch, force, paths, to',
    )
    expect(await decide({ deny: ['git__push(brunch=main)'] }, { branch: 'x' })).toBe('deny')
  })
})

describe('a rule that denies or asks fails towards the person', () => {
  const decide = async (mode: Mode, subject: Tool, rules: Parameters<typeof policyOf>[1]) =>
    (await authorise({ tool: subject, arguments: {}, principal: { user: 'a' }, policy: policyOf(mode, rules) }))
      .decision

  test('a deny or ask pattern that the tool cannot read matches every call, and an allow pattern none', async () => {
    const deaf = make(['write'])
    const picky = make(['write'], { matches: () => false, checkPattern: () => 'no such pattern' })
    for (const subject of [deaf, picky])
      for (const mode of ['default', 'bypass'] as const) {
        expect(await decide(mode, subject, { allow: ['*'], deny: ['subject(x)'] })).toBe('deny')
        expect(await decide(mode, subject, { allow: ['*'], ask: ['subject(x)'] })).toBe('ask')
        expect(await decide('default', subject, { allow: ['subject(x)'] })).toBe('ask')
      }
  })

  test('whether a rule denies a call may not be known: then no mode, check or allow rule spares the question', async () => {
    const allows = () => ({ decision: 'allow', reason: 'r' }) as const
    for (const more of [{}, { check: allows }]) {
      const subject = make(['write'], { matches: () => 'unknown', edits: true, ...more })
      for (const mode of ['default', 'accept-edits', 'bypass'] as const)
        expect(await decide(mode, subject, { allow: ['*'], deny: ['subject(x)'] })).toBe('ask')
      expect(await decide('dont-ask', subject, { allow: ['*'], deny: ['subject(x)'] })).toBe('deny')
      expect(await decide('default', subject, { allow: ['subject(x)'] })).toBe('check' in more ? 'allow' : 'ask')
    }
    const denies = make(['write'], { matches: () => 'unknown', check: () => ({ decision: 'deny', reason: 'r' }) })
    expect(await decide('bypass', denies, { deny: ['subject(x)'] })).toBe('deny')
  })
})

describe('rules', () => {
  test.each(['', ' ', 'a b', 'tool(', 'tool)', 'tool()', 'töol', 'tool(x', '(x)', 'tool(x) y'])(
    '%j is malformed',
    (text) => {
      expect(() => parseRule(text)).toThrow(expect.objectContaining({ code: 'rule_invalid' }))
    },
  )

  test('that match no tool, or carry a pattern that the tool cannot read, are errors', () => {
    const tools = [make(['read'])]
    expect(() => checkRule(parseRule('nothing*'), 'deny', tools)).toThrow('matches none of the tools (subject)')
    expect(() => checkRule(parseRule('subject(x)'), 'deny', tools)).toThrow('cannot interpret a pattern')
    expect(() => checkRule(parseRule('sub*'), 'deny', tools)).not.toThrow()
    const reader = make(['read'], {
      matches: async () => true,
      checkPattern: (pattern) => (pattern === 'x' ? 'there is no x' : undefined),
    })
    expect(() => checkRule(parseRule('subject(x)'), 'deny', [reader])).toThrow('"subject(x)": there is no x')
    expect(() => checkRule(parseRule('subject(y)'), 'deny', [reader])).not.toThrow()
  })

  test.each([
    ['*', 'anything', true],
    ['git__*', 'git__push', true],
    ['git__*', 'git_push', false],
    ['*_note', 'save_note', true],
    ['a*b*c', 'a1b2c', true],
    ['a*b*c', 'a1c2b', false],
    ['a*a', 'a', false],
    ['note', 'notes', false],
  ])('%s names %s: %s', (pattern, name, expected) => {
    expect(namesTool(parseRule(pattern), 'allow', { name })).toBe(expected)
  })
})

describe('B3: permission ids', () => {
  test.each([
    [['*:*:*'], 'biz:order:query', true],
    [['biz:*'], 'biz:order:query', true],
    [['biz:order:*'], 'biz:order:query', true],
    [['biz:*:query'], 'biz:order:query', true],
    [['biz:order:query'], 'biz:order:query', true],
    [['biz:order'], 'biz:order:query', false],
    [['biz:order:query'], 'biz:order', false],
    [['biz:orders:*'], 'biz:order:query', false],
    [['biz:order:query:extra'], 'biz:order:query', false],
    [['biz:*:delete'], 'biz:order:query', false],
    [[''], 'biz:order:query', false],
    [[], 'biz:order:query', false],
    [['*'], 'biz:order:query', true],
  ])('%j grants %s: %s', (granted, needed, expected) => {
    expect(grants(granted, needed)).toBe(expected)
  })
})
