// Settings of the task API and of the Agent Protocol.
import { z } from 'zod'
import { boolean, duration, list } from './kinds.ts'

export const taskSettings = z.strictObject({
  streamLimit: duration('1s', '24h', 'How long a stream of /agent/stream or /agent/ws may last; readers come back.'),
})

export const agentProtocolSettings = z.strictObject({
  enabled: boolean('Whether there are routes below /tasks.'),
  streaming: boolean('Whether the events of a task can be streamed.'),
  hitl: boolean('Whether tasks may wait for decisions; without it what would ask is denied.'),
  replay: boolean('Whether a reader without a number gets a task from its start, or only what comes from then on.'),
  streamLimit: duration('1s', '24h', 'How long a stream of events may last; readers come back.'),
  promote: list(
    /\S/,
    'Attributes of a submission that tools find under their own names; reserved names are skipped.',
    'names of attributes',
  ),
})

export const protocolDefaults: Readonly<Record<string, unknown>> = {
  'tasks.streamLimit': '5m',
  'agentProtocol.enabled': true,
  'agentProtocol.streaming': true,
  'agentProtocol.hitl': true,
  'agentProtocol.replay': true,
  'agentProtocol.streamLimit': '3h',
  'agentProtocol.promote': [],
}
