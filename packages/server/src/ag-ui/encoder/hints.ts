// Hints for users about things for which the protocol has no event.
import type { Event } from '@oxbow/core'

export interface Hint {
  readonly source: string
  readonly text: string
  readonly callId?: string
}

/** After this many failures in a row the engine disables a tool for the rest of the turn. */
const GIVEN_UP_AFTER = 3

/** Follows the events of one turn and returns the hints of each. */
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
              text: `The conversation was compacted from about ${event.tokensBefore} to ${event.tokensAfter} tokens in the model’s context.`,
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
              text: `${tool} has failed ${inARow} times in a row and is disabled for the rest of this turn.`,
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
