export { type Agent, type AgentDefinition, type AgentLimits, type AgentParts, agent, DEFAULT_LIMITS } from './agent.ts'
export { type ApprovalRequest, needsApproval, type ToolDecision } from './asking.ts'
export type { Capability } from './capability.ts'
export type { ChildEnd, ChildOptions, Children, ChildStatus, ChildTask, ChildView } from './children/children.ts'
export type {
  CompactedAgent,
  CompactedBody,
  Compaction,
  CompactionRequest,
  Compactor,
  CompactorFor,
  Conversation,
} from './compactor.ts'
export type { StateLimits } from './deadlines.ts'
export type { CompactionReason } from './decide.ts'
export type { ApprovalDecision } from './deciding.ts'
export type { NamedDecision } from './decisions.ts'
export type { Effect } from './effect.ts'
export { createEngine, type Engine, type EngineOptions, type RunningTurn } from './engine.ts'
export { type ModelErrorCode, OxbowError } from './errors.ts'
export { estimateMessageTokens, estimateTokens } from './estimate.ts'
export type * from './events/types.ts'
export { isEvent } from './events/types.ts'
export { evolve } from './evolve.ts'
export { assertId, isId } from './ids.ts'
export type { Input, RunOptions } from './input.ts'
export { type JsonSchema, type Schema, validatorFor } from './json-schema.ts'
export type { ActingContext, CallOutcome, Middleware, ModelCallContext, TurnContext } from './middleware.ts'
export {
  clippedName,
  type FailedAttempt,
  type Model,
  type ModelCallOptions,
  type ModelDelta,
  ModelError,
  type ModelReply,
  type ModelRequest,
  mayBeTokens,
  noUsage,
  soundUsage,
  type ToolSpec,
  tokenCount,
} from './model.ts'
export { nearest } from './nearest.ts'
export type { Part } from './part.ts'
export { authorise, MODES, type Mode, mayEverRun, type PolicyAbove, type Verdict } from './permissions/gate.ts'
export { ADMIN, mayActFor, mayDecide, mayShareRules } from './permissions/may-decide.ts'
export { grants } from './permissions/permission-ids.ts'
export { type RememberedRule, type RememberedRulesStore, rememberedRules } from './permissions/remembered.ts'
export { matchesWildcard } from './permissions/wildcard.ts'
export type * from './ports.ts'
export { bounded, type PromptContext, type PromptSection } from './prompt.ts'
export {
  isEnd,
  newResult,
  type PendingApproval,
  type PendingCall,
  resultAfter,
  type TurnResult,
  turnResult,
} from './result.ts'
export type { Finding, Reviewed, Reviewer } from './reviewer.ts'
export { type RowColumns, type RowFilter, type RowValue, rowFilter, type WantedDepartments } from './rows/row-filter.ts'
export type { Sql, SqlOptions } from './rows/sql.ts'
export type { Session, Submitted, TurnStream } from './session.ts'
export type { FaultPoint } from './session-log.ts'
export {
  type Said,
  type SessionHit,
  type SessionHits,
  type SessionSearch,
  saidIn,
  searchSessions,
} from './session-search.ts'
export { type Slot, type SlotAccess, type Slots, slot, slotValue } from './slots.ts'
export { addUsage, emptyState, type SessionState, statusOf, type TurnState, tokensOf } from './state.ts'
export {
  type DwellTimes,
  dwellTimes,
  isOver,
  newTask,
  TASK_STATES,
  type Task,
  type TaskState,
  taskAfter,
  taskOf,
} from './task.ts'
export {
  externalTool,
  type Reconciliation,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  type ToolResult,
  type ToolVerdict,
  tool,
} from './tool.ts'
