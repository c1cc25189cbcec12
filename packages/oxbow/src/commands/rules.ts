// Rules that were remembered together with approvals.
import { OxbowError, rememberedRules } from '@oxbow/core'
import { type RuntimeOptions, withBackend } from '../runtime.ts'
import { printable } from '../terminal/transcript.ts'
import { commandLine } from '../terminal/words.ts'

interface RulesCommand extends RuntimeOptions {
  readonly user: string
  readonly json?: boolean
}

export function listRules(options: RulesCommand): Promise<void> {
  return withBackend(options, async (backend) => {
    const rules = await rememberedRules(backend).list({ user: options.user })
    if (options.json) for (const it of rules) console.log(JSON.stringify(it))
    else if (rules.length === 0) console.log('No rules are remembered, except perhaps in single sessions.')
    else
      for (const { id, rule, scope, author, origin, expiresAt } of rules) {
        const until = expiresAt === undefined ? '' : `, until ${new Date(expiresAt).toISOString()}`
        const of = origin === undefined ? '' : `, of ${origin}`
        console.log(printable(`${id}  ${rule}  (${scope}${of}, accepted by ${author}${until})`))
      }
  })
}

export function removeRule(id: string, options: RulesCommand): Promise<void> {
  return withBackend(options, async (backend) => {
    const removed = await rememberedRules(backend).remove({ user: options.user }, id)
    if (removed === undefined)
      throw new OxbowError(
        'unknown_rule',
        `Unknown rule ${JSON.stringify(id)}. Run: ${commandLine('rules list', options)}`,
      )
    console.log(printable(`Removed: ${removed.rule} (${removed.scope})`))
  })
}
