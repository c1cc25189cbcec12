// Rules that people accepted beyond one session: kept per user and per project (tenant), with author and expiry.
import { hash } from 'node:crypto'
import { DEFAULT_TENANT, isSamePerson, type Person } from '../authority.ts'
import { defined } from '../checks/defined.ts'
import { checkFields, type Fields, text } from '../checks/fields.ts'
import { OxbowError } from '../errors.ts'
import type { Event, Principal } from '../events/types.ts'
import type { Backend, Files, SessionKey } from '../ports.ts'
import type { SessionRule } from '../state/state.ts'
import { parseRule, type Rule } from './rules.ts'

const PATH = 'rules.json'

/** `*` is not a legal id, so no session can have this key. */
const ownerOf = (tenant: string, user: string): SessionKey => ({ tenant, user, session: '*rules' })
const EVERYBODY = '*'

/** The rules of one session, and those of all sessions of the user. */
export interface RememberedRules {
  readonly session: readonly Rule[]
  readonly shared: readonly Rule[]
}

export async function rulesFor(
  files: Files,
  principal: Principal,
  tenant: string,
  session: readonly SessionRule[],
): Promise<RememberedRules> {
  const [own, shared] = await Promise.all([
    load(files, ownerOf(principal.tenant ?? tenant, principal.user)),
    load(files, ownerOf(tenant, EVERYBODY)),
  ])
  const valid = (rules: readonly SessionRule[]): Rule[] =>
    rules.filter(isValid).map(({ rule, origin = '' }) => ({ ...parseRule(rule), origin }))
  const theirs = session.filter(({ asker }) => asker !== undefined && isSamePerson(asker, principal))
  return { session: valid(theirs), shared: valid([...own.rules, ...shared.rules]) }
}

/**
 * Stores the rule that came with a decision: for the user, or for the whole tenant. The decision is the record,
 * and doing this again changes nothing.
 */
export async function storeRememberedRule(
  files: Files,
  tenant: string,
  asker: Person,
  { verdict, remember: rule, principal }: Pick<Event<'approval.resolved'>, 'verdict' | 'remember' | 'principal'>,
): Promise<void> {
  if (verdict !== 'approved' || rule === undefined || rule.scope === 'session') return
  const { expiresAt, origin } = rule
  const kept = {
    rule: rule.rule,
    author: principal?.user ?? '',
    ...defined({ origin, expiresAt }),
  }
  const owner = rule.scope === 'user' ? ownerOf(asker.tenant ?? tenant, asker.user) : ownerOf(tenant, EVERYBODY)
  await change(files, owner, (rules) =>
    rules.some((it) => it.rule === kept.rule && it.origin === origin && it.expiresAt === expiresAt)
      ? rules
      : [...rules, kept],
  )
}

export interface RememberedRule extends SessionRule {
  readonly id: string
  /** `user`: in all sessions of one user. `project`: for the whole tenant. */
  readonly scope: 'user' | 'project'
}

/** Whose rules. */
interface RuleOwner {
  /** Default `default`. */
  readonly tenant?: string
  readonly user: string
}

const OWNER: Fields<RuleOwner> = { tenant: text, user: text }

export interface RememberedRulesStore {
  /** The rules that apply to a user: their own, then the tenant's. Expired rules are omitted. */
  list(owner: RuleOwner): Promise<RememberedRule[]>
  /**
   * Takes a rule back: calls like it ask again, also in turns that run. Resolves with the rule, or with undefined when
   * there is none with this id. The caller checks whether the person may do that; a rule of the project belongs to
   * everybody.
   */
  remove(owner: RuleOwner, id: string): Promise<RememberedRule | undefined>
}

/**
 * The rules that people accepted together with an approval, for one user or for everybody. Those of one session are in
 * its state (`rules`), and end with it.
 *
 * @throws (by its functions) OxbowError `storage_busy`, `invalid_option`
 * @example for (const { id, rule } of await rememberedRules(engine.backend).list({ user: 'ann' })) console.log(id,
 * rule)
 */
export function rememberedRules({ files }: Pick<Backend, 'files'>): RememberedRulesStore {
  const scopes = (owner: RuleOwner) => {
    const invalid = (what: string) => new OxbowError('invalid_option', `rememberedRules(): ${what}`)
    checkFields(owner, OWNER, invalid)
    const { tenant = DEFAULT_TENANT, user } = owner
    if (user === undefined) throw invalid('user is required')
    return [
      { scope: 'user', owner: ownerOf(tenant, user) },
      { scope: 'project', owner: ownerOf(tenant, EVERYBODY) },
    ] as const
  }
  return {
    async list(whose) {
      const all = scopes(whose).map(async ({ scope, owner }) =>
        (await load(files, owner)).rules.filter(isValid).map((it) => ({ ...it, id: idOf(scope, it), scope })),
      )
      return (await Promise.all(all)).flat()
    },
    async remove(whose, id) {
      for (const { scope, owner } of scopes(whose)) {
        let removed: SessionRule | undefined
        await change(files, owner, (rules) => {
          removed = rules.find((it) => idOf(scope, it) === id)
          return removed === undefined ? rules : rules.filter((it) => it !== removed)
        })
        if (removed !== undefined) return { ...removed, id, scope }
      }
      return undefined
    },
  }
}

const isValid = ({ expiresAt }: SessionRule): boolean => expiresAt === undefined || expiresAt > Date.now()

const idOf = (scope: string, { rule, expiresAt, origin }: SessionRule): string => {
  const parts = [scope, rule, expiresAt ?? null, ...(origin === undefined ? [] : [origin])]
  return `rule_${hash('sha256', JSON.stringify(parts)).slice(0, 16)}`
}

/** `next` returns the same list when there is nothing to change. */
async function change(
  files: Files,
  owner: SessionKey,
  next: (rules: readonly SessionRule[]) => readonly SessionRule[],
): Promise<void> {
  for (let attempt = 0; attempt < 10; attempt++) {
    const { rules, version } = await load(files, owner)
    const changed = next(rules)
    if (changed === rules) return
    if ((await files.put(owner, PATH, Buffer.from(JSON.stringify(changed)), version)) !== undefined) return
  }
  throw new OxbowError(
    'storage_busy',
    'The rules could not be changed: too many people are changing rules. Try again.',
    {
      retryable: true,
    },
  )
}

async function load(files: Files, owner: SessionKey): Promise<{ rules: SessionRule[]; version: number }> {
  const file = await files.get(owner, PATH)
  if (file === undefined) return { rules: [], version: 0 }
  return { rules: JSON.parse(Buffer.from(file.data).toString()) as SessionRule[], version: file.version }
}
