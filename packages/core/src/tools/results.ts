// The results of one tool's calls, with the tool's own types.
import { OxbowError } from '../errors.ts'
import { textOf } from '../events/blocks.ts'
import type { MadeCall, TurnResult } from '../state/turn-result.ts'
import type { Tool, TypedTool } from './tool.ts'

export interface TypedCall<Input, Output> {
  readonly callId: string
  readonly arguments: Input
  /** Undefined if the result was too long for the conversation: read its artifact. */
  readonly output: Output | undefined
}

/**
 * The successful calls of a tool in a turn, in their order. A tool with an `output` schema gives values of that schema,
 * any other the text that the model was given.
 *
 * @throws OxbowError `invalid_option` for what is not a result, such as a promise of one
 * @example
 * const result = await session.run('What is the area of 3 by 4?')
 * for (const { arguments: { width }, output } of resultsOf(result, area)) console.log(width, output)
 */
export function resultsOf<Input, Output>(
  result: Pick<TurnResult, 'calls'>,
  tool: TypedTool<Input, Output>,
): TypedCall<Input, Output>[] {
  if (!Array.isArray(result?.calls) || typeof tool?.name !== 'string')
    throw new OxbowError(
      'invalid_option',
      'resultsOf(): needs the result of a turn and a tool: resultsOf(await session.run(text), area)',
    )
  return result.calls
    .filter((it) => it.tool === tool.name && it.status === 'success')
    .map((it) => ({
      callId: it.callId,
      arguments: it.arguments as Input,
      output: outputOf(it, tool) as Output | undefined,
    }))
}

/** The result is the last block: a note on its approval may precede it. */
function outputOf({ content }: MadeCall, { output }: Tool): unknown {
  const last = content.at(-1)
  if (last?.type !== 'text') return undefined
  const text = textOf([last])
  if (output === undefined) return text
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
