import './needs-node.ts'

export { type AgentDefinition, agent } from './agents/agent.ts'
export type { Agent, AgentParts, Part } from './agents/agent-type.ts'
export type { Capability } from './agents/capability.ts'
export type {
  CompactedAgent,
  Compaction,
  CompactionReason,
  CompactionRequest,
  Compactor,
  CompactorFor,
  Conversation,
} from './agents/compactor.ts'
export { type AgentLimits, type Budget, DEFAULT_LIMITS } from './agents/limits.ts'
export type { ActingContext, CallOutcome, Middleware, ModelCallContext, TurnContext } from './agents/middleware.ts'
export type { PromptContext, PromptSection } from './agents/prompt.ts'
export type { Finding, Reviewed, Reviewer } from './agents/reviewer.ts'
export type { FinishedStep, StopWhen } from './agents/stop-when.ts'
export type { NamedDecision } from './approvals/decide-approvals.ts'
export type { ApprovalDecision } from './approvals/decision.ts'
export { mayDecide } from './authority.ts'
export type {
  JsonSchema,
  Schema,
  SchemaError,
  SchemaInput,
  SchemaOutput,
} from './checks/json-schema.ts'
export { createEngine, type Engine, type EngineOptions } from './engine/engine.ts'
export { type Erasure, type ErasureScope, eraseData } from './engine/erase.ts'
export type { RunningTurn } from './engine/turn-workers.ts'
export { CODES, type ErrorCode, type ModelErrorCode, OxbowError, ToolError } from './errors.ts'
export { textOf } from './events/blocks.ts'
export { estimateTokens } from './events/estimate.ts'
export type * from './events/types.ts'
export { isEvent } from './events/types.ts'
export { userId } from './journal/ids.ts'
export type { FaultPoint } from './journal/session-log.ts'
export {
  type FailedAttempt,
  type Model,
  type ModelCallOptions,
  type ModelDelta,
  ModelError,
  type ModelReply,
  type ModelRequest,
  noUsage,
  type ToolSpec,
} from './model.ts'
export { type RememberedRule, type RememberedRulesStore, rememberedRules } from './permissions/remembered.ts'
export type * from './ports.ts'
export { type RowColumns, type RowFilter, type RowValue, rowFilter, type WantedDepartments } from './rows/row-filter.ts'
export type { Sql, SqlOptions } from './rows/sql.ts'
export { fileBlock } from './session/files.ts'
export type { Input, RunOptions } from './session/input.ts'
export { releaseParked } from './session/release-parked.ts'
export type { Session, TypedResult } from './session/session.ts'
export {
  type SessionHit,
  type SessionHits,
  type SessionSearch,
  searchSessions,
} from './session/session-search.ts'
export type { Submitted, TurnStream } from './session/turn-stream.ts'
export type { StateLimits } from './state/deadlines.ts'
export { type Slot, type SlotAccess, type Slots, slot, slotValue } from './state/slots.ts'
export {
  addUsage,
  findTurn,
  openApprovals,
  type SessionState,
  type TurnState,
  tokensOf,
} from './state/state.ts'
export type {
  Task,
  TaskState,
} from './state/task.ts'
export { turnEvents } from './state/turn-events.ts'
export {
  isEnd,
  type MadeCall,
  type PendingApproval,
  type PendingCall,
  type TurnResult,
  turnResult,
} from './state/turn-result.ts'
export type { ChildEnd, ChildOptions, Children, ChildStatus, ChildTask, ChildView } from './tools/child-sessions.ts'
export { EFFECTS, type Effect } from './tools/effect.ts'
export type { Mode } from './tools/mode.ts'
export { type ApprovalRequest, needsApproval, type ToolDecision } from './tools/needs-approval.ts'
export { resultsOf, type TypedCall } from './tools/results.ts'
export {
  type Attributes,
  type DecisionContext,
  externalTool,
  type Reconciliation,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  type ToolResult,
  type ToolVerdict,
  type TypedTool,
  tool,
} from './tools/tool.ts'
