// The HTTP service inside your own program. A separate entry, so that importing `oxbow` does not load it.
export {
  type AgentProtocolHost,
  createApiKey,
  createIdentity,
  createLogger,
  createMetrics,
  createService,
  createTracing,
  engineErrors,
  identityProblems,
  loadConfig,
  loggingMiddleware,
  modelListeners,
  promoteAttributes,
  publicApprovalId,
} from '@oxbow/server'
