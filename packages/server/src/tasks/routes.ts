import type { Engine } from '@oxbow/core'
import type { Route } from '../http/route.ts'
import type { TurnSlots } from '../identity/limits/turn-slots.ts'
import { cancelTaskRoute, pauseTaskRoute, resumeTaskRoute, taskRoute } from './acting.ts'
import { createTaskRoute } from './create.ts'
import { type TaskStreams, taskStreamRoute } from './stream/stream.ts'

/** The task API: long-running work by id, for systems that check the result later. */
export const taskRoutes = (
  engine: Engine,
  streams: TaskStreams,
  limits: { maxMessageLength: number },
  slots: TurnSlots,
): Route[] => [
  createTaskRoute(engine, streams.rights, limits, slots),
  taskRoute(engine),
  taskStreamRoute(engine, streams),
  pauseTaskRoute(engine),
  resumeTaskRoute(engine),
  cancelTaskRoute(engine),
]
