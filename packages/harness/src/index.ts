export { remoteAgent } from './remote-agent.ts'
export type { ApprovalPolicy, RemoteAgentOptions, RemoteDecision, RemoteSource } from './remote-options.ts'
export type { RemoteCall, RemoteEvent } from './remote-wire.ts'
