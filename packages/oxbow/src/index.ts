// The umbrella package: everything for an agent inside your own program. See docs/library.md.

export { memory, sqlite } from '@oxbow/backends'
export * from '@oxbow/core'
export { modelFromEnvironment, offline, openaiChat, resolveModel } from '@oxbow/models'
export {
  createIdentity,
  createLogger,
  createMetrics,
  createService,
  engineErrors,
  loadConfig,
  loggingMiddleware,
} from '@oxbow/server'
export { defaultAgent } from './agent/agent.ts'
