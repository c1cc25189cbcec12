// Rules of durability, permission and identity, each broken in one place. Some test must fail for every one of them.

export interface Mutant {
  /** The rule that is broken. */
  readonly rule: string
  readonly file: string
  /** Occurs exactly once in the file. */
  readonly find: string
  readonly replace: string
  /** Test files, of which one must fail. */
  readonly tests: readonly string[]
}

const core = 'packages/core/src'
const server = 'packages/server/src'
const backends = 'packages/backends/src'

export const MUTANTS: readonly Mutant[] = [
  // Durability
  {
    rule: 'a worker whose claim was overtaken writes nothing',
    file: `${core}/turn/turn-run.ts`,
    find: 'turn?.turnId === turnId && turn.claim?.epoch === epoch && turn.claim.worker === worker',
    replace: 'turn?.turnId === turnId',
    tests: [`${core}/turn/durability.test.ts`],
  },
  {
    rule: 'an append is refused when the journal has moved on (memory)',
    file: `${backends}/memory/index.ts`,
    find: 'if (head !== expectedSeq) return { ok: false, head }',
    replace: '',
    tests: [`${backends}/memory`],
  },
  {
    rule: 'a snapshot that is ahead of the journal is not believed',
    file: `${core}/journal/session-log.ts`,
    find: 'snapshot.seq <= (await this.#journal.head(this.key))',
    replace: 'true',
    tests: [`${core}/turn/durability.test.ts`, `${core}/perform/faults.test.ts`],
  },
  {
    rule: 'a call that does more than read has started in the store before it runs',
    file: `${core}/perform/act.ts`,
    find: 'onlyReads(tool) ? run.writeAhead : run.write',
    replace: 'run.writeAhead',
    tests: [`${core}/turn/durability.test.ts`],
  },
  {
    rule: 'an interrupted call without reconcile is unknown, and not run again',
    file: `${core}/perform/act.ts`,
    find: 'if (reconcile === undefined) return unknown',
    replace:
      'if (reconcile === undefined) return runAttempts(run, call, tool, parsed.input, operationId, 1, beside, { principal })',
    tests: [`${core}/turn`, 'test/crash/crash.test.ts'],
  },
  {
    rule: 'the operation id names the position of the call',
    file: `${core}/journal/ids.ts`,
    find: 'turnId, step, position]))',
    replace: 'turnId, step]))',
    tests: [`${core}/perform/act.test.ts`],
  },
  {
    rule: 'a turn id that was used is the same turn',
    file: `${core}/session/session.ts`,
    find: "if (known !== undefined) return { turnId: known.turnId, accepted: 'duplicate', after: known.startedSeq - 1 }",
    replace: '',
    tests: [`${core}/turn`, `${core}/session`],
  },
  {
    rule: 'another input under a used turn id is refused',
    file: `${core}/session/accepting.ts`,
    find: '!isDeepStrictEqual(known.input, input)',
    replace: 'false',
    tests: [`${core}/turn`, `${core}/session`],
  },
  {
    rule: 'a write of a worker is tried again while the store is full',
    file: `${core}/journal/session-log.ts`,
    find: 'error instanceof OxbowError && error.retryable && error.code.startsWith',
    replace: 'false && error instanceof OxbowError && error.code.startsWith',
    tests: [`${core}/journal/session-log.test.ts`],
  },
  {
    rule: 'readers see a fragment behind the events that were folded before it',
    file: `${core}/journal/session-log.ts`,
    find: 'if (this.ahead.seq > this.state.seq)',
    replace: 'if (false)',
    tests: [`${core}/journal/session-log.test.ts`],
  },
  {
    rule: 'what waits for the store is folded again after a conflict',
    file: `${core}/journal/session-log.ts`,
    find: 'if (!this.#storing) this.#rebuild()',
    replace: '',
    tests: [`${core}/journal/session-log.test.ts`],
  },
  {
    rule: 'a turn that made no progress in too many attempts is parked',
    file: `${core}/turn/decide.ts`,
    find: ' || turn.recoveries > limits.maxRecoveries',
    replace: '',
    tests: [`${core}/turn`],
  },
  {
    rule: 'an orderly stop is not an interrupted attempt',
    file: `${core}/state/evolve.ts`,
    find: 'recoveries: Math.max(0, turn.recoveries - 1)',
    replace: 'recoveries: turn.recoveries',
    tests: [`${core}/turn/durability.test.ts`, `${core}/turn/repeats.test.ts`],
  },
  {
    rule: 'half an answer runs no calls',
    file: `${core}/perform/think.ts`,
    find: "error === undefined ? withCallIds(run, step, blocks) : blocks.filter((it) => it.type !== 'call')",
    replace: 'withCallIds(run, step, blocks)',
    tests: [`${core}/turn`],
  },
  {
    rule: 'a session that took long to load gets a snapshot',
    file: `${core}/journal/session-log.ts`,
    find: 'this.#loaded >= MOST_LOADED ? 1 :',
    replace: '',
    tests: [`${core}/journal/long-session.test.ts`],
  },
  {
    rule: 'the process serves others while a long session is read',
    file: `${core}/journal/session-log.ts`,
    find: 'if (page.length >= 500) await new Promise(setImmediate)',
    replace: '',
    tests: [`${core}/journal/long-session.test.ts`],
  },
  // Permission
  {
    rule: 'a deny rule denies',
    file: `${core}/permissions/gate.ts`,
    find: 'if (denied !== undefined) return deny(',
    replace: 'if (false) return deny(',
    tests: [`${core}/permissions`],
  },
  {
    rule: 'in dont-ask every question is a denial',
    file: `${core}/permissions/gate.ts`,
    find: "if (policy.mode === 'dont-ask')",
    replace: 'if (false)',
    tests: [`${core}/permissions`],
  },
  {
    rule: 'a permission id that is missing refuses in every mode',
    file: `${core}/permissions/gate.ts`,
    find: 'if (permission !== undefined && !grants(principal.permissions ?? [], permission))',
    replace: 'if (false)',
    tests: [`${core}/permissions`],
  },
  {
    rule: 'a sub-agent has at most the authority of its parent',
    file: `${core}/permissions/gate.ts`,
    find: 'if (severity(verdict) <= severity(strictest)) continue',
    replace: 'continue',
    tests: [`${core}/permissions`],
  },
  {
    rule: 'a wildcard matches whole segments',
    file: `${core}/authority.ts`,
    find: "if (granted.length < needed.length && granted[last] !== '*') return false",
    replace: '',
    tests: [`${core}/permissions`, `${core}/approvals`, `${core}`],
  },
  {
    rule: 'an approval belongs to exact arguments',
    file: `${core}/perform/may-run.ts`,
    find: 'edited === undefined && digestOf(tool.name, requested.arguments) !== requested.digest',
    replace: 'false',
    tests: [`${core}/approvals/exact.test.ts`],
  },
  {
    rule: 'an approved call is authorised again when it runs',
    file: `${core}/perform/may-run.ts`,
    find: 'if (denied !== undefined) return refuse(denied.reason, parsed.arguments)',
    replace: '',
    tests: [`${core}/approvals`],
  },
  {
    rule: 'only authorised people decide on an approval',
    file: `${core}/authority.ts`,
    find: 'if (approver === undefined) return isSamePerson(principal, owner)',
    replace: 'if (approver === undefined) return true',
    tests: [`${core}/approvals`],
  },
  {
    rule: 'an approver needs the permission that the tool names',
    file: `${core}/authority.ts`,
    find: 'return tenantOf(principal) === tenantOf(owner) && grants(principal.permissions ?? [], approver)',
    replace: 'return tenantOf(principal) === tenantOf(owner)',
    tests: [`${core}/approvals`],
  },
  {
    rule: 'an approval is decided once',
    file: `${core}/approvals/decision.ts`,
    find: 'if (resolved !== undefined || call?.finished !== undefined)',
    replace: 'if (false)',
    tests: [`${core}/approvals`],
  },
  {
    rule: 'a number that a double cannot hold is refused',
    file: `${core}/checks/fit.ts`,
    find: 'if (lost !== undefined)',
    replace: 'if (false)',
    tests: [`${core}/turn/repeats.test.ts`],
  },
  {
    rule: 'what a tool throws is shown to nobody',
    file: `${core}/perform/run-tool.ts`,
    find: 'const known = error instanceof OxbowError',
    replace: 'const known = error instanceof Error',
    tests: [`${core}/perform/act.test.ts`],
  },
  // Identity
  {
    rule: 'users of other tenants are other people',
    file: `${core}/authority.ts`,
    find: 'one.user === other.user && tenantOf(one) === tenantOf(other)',
    replace: 'one.user === other.user',
    tests: [`${core}/approvals/exact.test.ts`],
  },
  {
    rule: 'an administrator stays in their tenant',
    file: `${core}/authority.ts`,
    find: 'tenantOf(principal) === tenant || grants(principal.permissions ?? [], ADMIN_OF_TENANTS)',
    replace: 'true',
    tests: [`${server}/identity`],
  },
  {
    rule: 'a request that names another user is refused',
    file: `${server}/principal.ts`,
    find: 'if (!mayActFor(caller, owner))',
    replace: 'if (false)',
    tests: [`${server}/identity`],
  },
  {
    rule: 'an expired API key is refused',
    file: `${server}/identity/api-keys/api-keys.ts`,
    find: 'expiresAt !== undefined && expiresAt <= Date.now()',
    replace: 'false',
    tests: [`${server}/identity`],
  },
  {
    rule: 'a token is for this service',
    file: `${server}/identity/jwt/jwt.ts`,
    find: '...(config.audience !== undefined && { audience: config.audience }),',
    replace: '',
    tests: [`${server}/identity`],
  },
  {
    rule: 'rows of other tenants are never seen',
    file: `${core}/rows/row-filter.ts`,
    find: 'rules.push(cannot({ [columns.tenant]: { $ne: principal.tenant ?? DEFAULT_TENANT } }))',
    replace: '{}',
    tests: [`${core}/rows`],
  },
]
