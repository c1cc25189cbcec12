export {
  type AgentFactory,
  type AgentProtocolHost,
  type AgentRequest,
  ATTRIBUTES_KEY,
  type AttributeCustomizer,
  promoteAttributes,
} from './agent-protocol/factory.ts'
export { placeOfApproval, publicApprovalId } from './approvals/public-id.ts'
export { sessionForRetry } from './chat/session-for-retry.ts'
export { type Config, type ConfigSources, loadConfig, type ServerConfig } from './config/config.ts'
export type { IdentityConfig } from './config/identity-config.ts'
export { describeConfig, describeMcp, describeModels, type SettingRow } from './config/settings/describe.ts'
export type { Profile } from './config/settings/schema.ts'
export type { Dependency } from './dependency.ts'
export { createApiKey, type NewApiKey } from './identity/api-keys/api-key.ts'
export type { Authentication, Credentials, Identity } from './identity/contract.ts'
export { createIdentity, identityProblems } from './identity/identity.ts'
export { modelListeners } from './models/listeners.ts'
export { createService, type Service, type ServiceOptions } from './service.ts'
export { createLogger, engineErrors, type LogOptions, loggingMiddleware } from './telemetry/logging.ts'
export { createMetrics, type Metrics } from './telemetry/metrics.ts'
export { createTracing, type Tracing, type TracingConfig } from './telemetry/tracing.ts'
