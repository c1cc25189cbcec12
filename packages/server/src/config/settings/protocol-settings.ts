// Settings of the task API and the Agent Protocol.
import { z } from 'zod'
import { boolean, duration, list } from './kinds.ts'

export const taskSettings = z.strictObject({
  streamLimit: duration('1s', '24h', 'The time limit of a stream of /agent/stream or /agent/ws; clients reconnect.'),
})

export const agentProtocolSettings = z.strictObject({
  enabled: boolean('Whether the routes below /tasks exist.'),
  streaming: boolean('Whether the events of a task can be streamed.'),
  hitl: boolean('Whether tasks may wait for approvals; if false, calls that need approval are denied.'),
  replay: boolean(
    'Whether a stream without a sequence number begins at the start of the task (true) or with the next event (false).',
  ),
  streamLimit: duration('1s', '24h', 'The time limit of an event stream; clients reconnect.'),
  promote: list(
    /\S/,
    'Attributes of a submission that tools also find under their own names; reserved names are skipped.',
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
