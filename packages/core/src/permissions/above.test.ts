// The whole table of what an agent may do that works for others; the engine's own use of it is tested with sub-agents.
import { describe, expect, test } from 'vitest'
import { tool } from '../index.ts'
import { MODES, type Mode } from '../tools/mode.ts'
import { authorise, denialOf, type Policy, type PolicyAbove } from './gate.ts'
import { parseRule } from './rules.ts'

type Verdict = 'allow' | 'ask' | 'deny'
type Kind = 'none' | 'allow' | 'ask' | 'deny'
const EFFECTS = ['read', 'write', 'exec', 'net', 'delegate', 'ask'] as const
type Effect = (typeof EFFECTS)[number]
const KINDS: readonly Kind[] = ['none', 'allow', 'ask', 'deny']
const STRENGTH = { allow: 0, ask: 1, deny: 2 } as const
const strictest = (all: readonly Verdict[]): Verdict => all.reduce((a, b) => (STRENGTH[a] >= STRENGTH[b] ? a : b))

/** What one agent alone decides, written independently of the gate. */
function alone(mode: Mode, effect: Effect, rule: Kind): Verdict {
  const free = (): Verdict => {
    if (rule === 'deny' || (mode === 'explore' && effect !== 'read')) return 'deny'
    if (rule === 'ask') return 'ask'
    if (mode === 'bypass' || effect === 'read') return 'allow'
    return rule === 'allow' ? 'allow' : 'ask'
  }
  const verdict = free()
  return verdict === 'ask' && mode === 'dont-ask' ? 'deny' : verdict
}

const policy = (mode: Mode, kind: Kind): Omit<Policy, 'above'> => ({
  mode,
  deny: [],
  ask: [],
  allow: [],
  ...(kind !== 'none' && { [kind]: [parseRule('act')] }),
})

const act = (effect: Effect) =>
  tool({ name: 'act', description: 'Acts.', effects: [effect], input: {}, run: () => 'done' })

const principal = { user: 'ann' }

describe('H10: under a policy above', () => {
  test('the strictest verdict holds, for every pair of modes, every effect, rule and right to it', async () => {
    const wrong: string[] = []
    let cases = 0
    for (const parent of MODES)
      for (const child of MODES)
        for (const effect of EFFECTS)
          for (const above of KINDS)
            for (const below of KINDS)
              for (const has of [true, false]) {
                const effects = new Set(has ? EFFECTS : ['delegate'])
                const lead: PolicyAbove = { agent: 'lead', effects, ...policy(parent, above) }
                const request = {
                  tool: act(effect),
                  arguments: {},
                  principal,
                  policy: { ...policy(child, below), above: [lead] },
                }
                const { decision } = await authorise(request)
                const missing = !has && ['write', 'exec', 'net'].includes(effect)
                const parents = missing ? 'deny' : alone(parent, effect, above)
                const expected = strictest([parents, alone(child, effect, below)])
                cases += 1
                if (decision !== expected)
                  wrong.push(`${parent}/${child} ${effect} ${above}/${below} ${has}: ${decision}, not ${expected}`)
                // What no approval lifts is never hidden behind what one could.
                const denied = await denialOf(request)
                const lifted = (mode: Mode): Mode => (mode === 'dont-ask' ? 'default' : mode)
                const hard =
                  missing ||
                  alone(lifted(parent), effect, above) === 'deny' ||
                  alone(lifted(child), effect, below) === 'deny'
                if ((denied !== undefined) !== hard)
                  wrong.push(`${parent}/${child} ${effect} ${above}/${below}: denialOf`)
              }
    expect(cases).toBe(5 * 5 * 6 * 4 * 4 * 2)
    expect(wrong).toEqual([])
  })

  test('more levels only restrict', async () => {
    for (const modes of [
      ['bypass', 'explore', 'bypass'],
      ['explore', 'bypass', 'bypass'],
      ['bypass', 'bypass', 'dont-ask'],
    ] as const) {
      const [root, middle, child] = modes
      const above = [root, middle].map(
        (mode): PolicyAbove => ({ agent: mode, effects: new Set(EFFECTS), ...policy(mode, 'none') }),
      )
      const request = { tool: act('write'), arguments: {}, principal, policy: { ...policy(child, 'none'), above } }
      expect((await authorise(request)).decision).toBe('deny')
    }
  })
})
