// The structured answer: accepted only when it satisfies the schema that the caller gave.

import { reviewInput } from '../agents/reviewer.ts'
import { type Held, parseHeld } from '../checks/exact-json.ts'
import { fitToSchema } from '../checks/fit.ts'
import type { TurnRun } from '../turn/turn-run.ts'

export async function checkOutput(run: TurnRun): Promise<void> {
  const turn = run.turn()
  const { schema } = turn.options.output!
  const { text } = turn.reply!
  const verdict = await validateOutput(text, schema)
  // Another program or agent will rely on the answer, so a wrong one is refused like one of the wrong form.
  const finding = 'value' in verdict ? run.agent.review?.(reviewInput(text, run.log.ahead)) : undefined
  const { turnId } = run
  await run.write((now) => {
    // A steering input came in between, so this answer is not the last one.
    if (now.steers.length > 0 || now.interrupt !== undefined) return []
    if (finding !== undefined)
      return [{ type: 'output.rejected', turnId, step: now.step, message: `${finding.correction} ${AGAIN}` }]
    if ('value' in verdict) return [{ type: 'turn.finished', turnId, reason: 'completed', output: verdict.value }]
    return [{ type: 'output.rejected', turnId, step: now.step, message: verdict.message }]
  })
}

const AGAIN = 'Answer again with one JSON value and nothing else.'

async function validateOutput(
  text: string,
  schema: Record<string, unknown>,
): Promise<{ value: unknown } | { message: string }> {
  let held: Held
  try {
    held = parseHeld(unfenced(text))
  } catch (error) {
    return {
      message:
        `Your answer is not valid JSON (${(error as Error).message}). ` +
        `${AGAIN} It must fit this JSON Schema: ${JSON.stringify(schema)}`,
    }
  }
  const fitted = await fitToSchema(held, schema, 'the requested output')
  if ('value' in fitted) return fitted
  return {
    message:
      `Your answer does not fit the requested schema: ${fitted.problem}. ` +
      `${AGAIN} JSON Schema: ${JSON.stringify(schema)}`,
  }
}

/** Many models put their JSON into a Markdown fence. */
function unfenced(text: string): string {
  // `trim` also takes a byte order mark away.
  const trimmed = text.trim()
  const start = /^```(?:json)?[ \t]*\n/.exec(trimmed)?.[0]
  return start !== undefined && trimmed.endsWith('```') ? trimmed.slice(start.length, -3) : trimmed
}
