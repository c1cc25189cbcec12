// The routes of sessions.
import type { Engine } from '@oxbow/core'
import type { Route } from '../http/route.ts'
import { callResultRoute, interruptRoute, releaseParkedRoute, releaseRoute, signalRoute } from './acting.ts'
import { eraseDataRoute, eraseSessionRoute } from './erasing.ts'
import { sessionEvents, sessionList, sessionMessages } from './reading.ts'
import { sessionSearchRoute } from './search.ts'
import { sessionStreamRoute } from './stream.ts'
import { sessionUsage } from './usage.ts'

/** Sessions: to find, read, follow and steer them. */
export const sessionRoutes = (engine: Engine, streams: Parameters<typeof sessionStreamRoute>[1]): Route[] => [
  sessionList(engine),
  sessionSearchRoute(engine),
  sessionMessages(engine),
  sessionEvents(engine),
  sessionUsage(engine),
  sessionStreamRoute(engine, streams),
  interruptRoute(engine),
  releaseRoute(engine),
  releaseParkedRoute(engine),
  callResultRoute(engine),
  signalRoute(engine),
  eraseSessionRoute(engine),
  eraseDataRoute(engine),
]
