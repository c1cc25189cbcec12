// Internals of core for Oxbow's other packages only: they may change in any release.
import './needs-node.ts'

export type { CompactedBody } from './agents/compactor.ts'
export { type OpenModel, openModelsWith } from './agents/named-models.ts'
export { bounded } from './agents/prompt.ts'
export {
  ADMIN,
  ADMIN_OF_TENANTS,
  DEFAULT_TENANT,
  grants,
  isSamePerson,
  mayActFor,
  mayActIn,
  mayShareRules,
  type Person,
} from './authority.ts'
export { defined } from './checks/defined.ts'
export { inexactNumber, parseExact } from './checks/exact-json.ts'
export {
  anyText,
  anything,
  callable,
  checkFields,
  checkObject,
  count,
  countOrNone,
  type FieldCheck,
  type Fields,
  fieldsOf,
  flag,
  isObject,
  listOf,
  notNegative,
  object,
  oneOf,
  permissionId,
  positive,
  text,
} from './checks/fields.ts'
export { type Validator, validatorFor } from './checks/json-schema.ts'
export { nearest } from './checks/nearest.ts'
export { optionalPackage } from './checks/optional-package.ts'
export { matchesWildcard } from './checks/wildcard.ts'
export { errorFrom, isErrorCode } from './errors.ts'
export { shownText } from './events/blocks.ts'
export { estimateMessageTokens } from './events/estimate.ts'
export { assertId, isId, nameOfKey } from './journal/ids.ts'
export { clippedName, mayBeTokens, soundUsage, tokenCount } from './model.ts'
export { authorise, mayEverRun, type PolicyAbove, type Verdict } from './permissions/gate.ts'
export { type Said, saidIn } from './session/session-search.ts'
export { withoutData } from './state/audit.ts'
export { evolve, foldFrom } from './state/evolve.ts'
export { callOfApproval, emptyState, statusOf } from './state/state.ts'
export { type DwellTimes, dwellTimes, isOver, newTask, TASK_STATES, taskAfter, taskOf } from './state/task.ts'
export { newResult, resultAfter } from './state/turn-result.ts'
export { MODES } from './tools/mode.ts'
