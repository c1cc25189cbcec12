// Rules that people accepted beyond one session: kept per user and per project (tenant), with author and expiry.
import { OxbowError } from '../errors.ts'
import type { Principal } from '../events/types.ts'
import type { Files, SessionKey } from '../ports.ts'
import type { SessionRule } from '../state.ts'
import { parseRule, type Rule } from './rules.ts'

const PATH = 'rules.json'

/** `*` is no legal id: nobody's session can meet these. */
const ownerOf = (tenant: string, user: string): SessionKey => ({ tenant, user, session: '*rules' })
const EVERYBODY = '*'

/** Those of one session, and those that hold in all of a user's. */
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
    load(files, ownerOf(tenant, principal.user)),
    load(files, ownerOf(tenant, EVERYBODY)),
  ])
  const now = Date.now()
  const valid = (rules: readonly SessionRule[]): Rule[] =>
    rules.filter((it) => it.expiresAt === undefined || it.expiresAt > now).map((it) => parseRule(it.rule))
  return { session: valid(session), shared: valid([...own.rules, ...shared.rules]) }
}

/** Adds a rule for one user, or for everybody of the tenant. */
export async function remember(
  files: Files,
  scope: 'user' | 'project',
  tenant: string,
  user: string,
  rule: SessionRule,
): Promise<void> {
  const owner = ownerOf(tenant, scope === 'user' ? user : EVERYBODY)
  for (let attempt = 0; attempt < 10; attempt++) {
    const { rules, version } = await load(files, owner)
    if (rules.some((it) => it.rule === rule.rule && it.expiresAt === rule.expiresAt)) return
    const data = Buffer.from(JSON.stringify([...rules, rule]))
    if ((await files.put(owner, PATH, data, version)) !== undefined) return
  }
  throw new OxbowError('storage_busy', 'The rule could not be stored: too many people are changing rules. Try again.', {
    retryable: true,
  })
}

async function load(files: Files, owner: SessionKey): Promise<{ rules: SessionRule[]; version: number }> {
  const file = await files.get(owner, PATH)
  if (file === undefined) return { rules: [], version: 0 }
  return { rules: JSON.parse(Buffer.from(file.data).toString()) as SessionRule[], version: file.version }
}
