export { compaction } from './compaction/compaction.ts'
export type { CompactionOptions } from './compaction/options.ts'
export { type McpCapability, mcp } from './mcp/mcp.ts'
export type { McpAuth, McpTokenStore } from './mcp/oauth.ts'
export type {
  McpAnswer,
  McpHttpServer,
  McpNotice,
  McpOptions,
  McpQuestion,
  McpServer,
  McpState,
  McpStatus,
  McpStdioServer,
  QuestionPolicy,
} from './mcp/options.ts'
export { remoteAgent } from './remote-agent.ts'
export type { ApprovalPolicy, RemoteAgentOptions, RemoteDecision, RemoteSource } from './remote-options.ts'
export type { RemoteCall, RemoteEvent } from './remote-wire.ts'
