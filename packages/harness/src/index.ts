export * from './compaction/index.ts'
export { type KnowledgeOptions, knowledge, type Searchable } from './knowledge/knowledge.ts'
export type { McpAuth, McpTokenStore } from './mcp/auth/oauth.ts'
export { type McpCapability, type McpHealth, mcp } from './mcp/mcp.ts'
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
export type { ApprovalPolicy, RemoteAgentOptions, RemoteDecision, RemoteSource } from './remote/options.ts'
export { remoteAgent } from './remote/remote-agent.ts'
export type { RemoteCall, RemoteEvent } from './remote/wire.ts'
export { type LoadAgentsOptions, loadAgents } from './sub-agents/load-agents.ts'
export type { SubAgent } from './sub-agents/sub-agent.ts'
export { type SubAgentsOptions, subAgents } from './sub-agents/sub-agents.ts'
