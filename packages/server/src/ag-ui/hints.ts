// What a person who watches should know and the protocol has no event for.
import type { Event } from '@oxbow/core'

export interface Hint {
  readonly source: string
  readonly text: string
  readonly callId?: string
}

/** After so many failures in a row the engine takes a tool away for the rest of the turn. */
const GIVEN_UP_AFTER = 3

/** Follows the events of one turn and tells the hints that each gives rise to. */
export function hintsOf(): { of(event: Event): Hint[] } {
  let steers: string[] = []
  const tools = new Map<string, string>()
  const failures = new Map<string, number>()

  return {
    of(event) {
      switch (event.type) {
        case 'turn.steered':
          steers.push(
            event.input.map((it) => (it.type === 'text' ? it.text : `[${it.name ?? it.mediaType}]`)).join('\n'),
          )
          return []
        case 'step.started': {
          const joined = steers.map((text): Hint => ({ source: 'steering', text: `Joined the conversation: ${text}` }))
          steers = []
          return joined
        }
        case 'model.finished':
          for (const block of event.message.blocks) if (block.type === 'call') tools.set(block.callId, block.tool)
          return []
        case 'output.rejected':
          return [{ source: 'output_rejected', text: event.message }]
        case 'reply.reviewed':
          return [{ source: event.code, text: event.message }]
        case 'context.compacted':
          if (event.messages === undefined) return []
          return [
            {
              source: 'context_compacted',
              text: `The conversation grew long: the model sees about ${event.tokensAfter} instead of ${event.tokensBefore} tokens of it from now on.`,
            },
          ]
        case 'call.finished': {
          const { callId, status, artifact } = event
          const tool = tools.get(callId) ?? 'the tool'
          const found: Hint[] = []
          if (artifact !== undefined)
            found.push({
              source: 'artifact',
              text: `The full result of ${tool} (${artifact.bytes} bytes) is kept as ${artifact.id}.`,
              callId,
            })
          if (status === 'unknown')
            found.push({
              source: 'unknown_outcome',
              text: `${tool} may or may not have taken effect. Check before repeating it.`,
              callId,
            })
          const failed = status !== 'success' && status !== 'cancelled'
          const inARow = failed ? (failures.get(tool) ?? 0) + 1 : 0
          failures.set(tool, inARow)
          if (inARow === GIVEN_UP_AFTER)
            found.push({
              source: 'tool_given_up',
              text: `${tool} has failed ${inARow} times in a row and is not used any more in this turn.`,
              callId,
            })
          return found
        }
        default:
          return []
      }
    },
  }
}
