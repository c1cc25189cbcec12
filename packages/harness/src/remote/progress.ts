// A remote agent's activity as progress lines with its name.
import type { ToolContext } from '@oxbow/core'
import type { RemoteAgentOptions, RemoteSource } from './options.ts'
import type { RemoteEvent } from './wire.ts'

const MAX_LINE = 200

export function progressOf(
  { name, onEvent }: Pick<RemoteAgentOptions, 'name' | 'onEvent'>,
  { operationId, turnId, callId, progress }: ToolContext,
): (event: RemoteEvent) => void {
  const source: RemoteSource = { agent: name, taskId: operationId, turnId, callId }
  let line = ''
  const say = (text: string): void => progress(`${name}: ${text.trim().slice(0, MAX_LINE)}`)
  const flush = (): void => {
    if (line.trim() !== '') say(line)
    line = ''
  }
  return (event) => {
    onEvent?.(event, source)
    if (event.type === 'TEXT_DELTA') {
      const [first = '', ...more] = (line + (event.text ?? '')).split('\n')
      line = first
      for (const next of more) {
        flush()
        line = next
      }
      if (line.length > MAX_LINE) flush()
      return
    }
    if (event.type === 'TOOL_CALL_END') {
      flush()
      say(`calls ${event.toolName} ${event.toolInput ?? ''}`)
    } else if (event.type === 'TOOL_RESULT') say(`${event.toolName} returned ${String(event.status).toLowerCase()}`)
    else if (event.type === 'REQUIRE_CONFIRM') say('waits for an approval')
    else if (event.type === 'RUN_FINISHED' || event.type === 'RUN_ERROR') flush()
  }
}
