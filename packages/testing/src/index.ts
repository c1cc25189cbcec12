export { eventsOf } from './events.ts'
export { killAt, recordPoints } from './fault-points.ts'
export { type Gate, gate } from './gate.ts'
export type { Hold, Reply, ReplyFunction, Script, ScriptedCall, WireUsage } from './reply.ts'
export {
  type ScriptedModel,
  type ScriptedModelOptions,
  type ScriptedRequest,
  scriptedModel,
} from './scripted-model.ts'
export { type SpawnOptions, spawnScriptedModel } from './spawn-scripted-model.ts'
export { until } from './until.ts'
export type { WireMessage, WireTool } from './wires/wire.ts'
