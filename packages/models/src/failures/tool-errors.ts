// Errors about a tool that give its place in the request: `tools.1`, `tools[1]`, `function_declarations[1]`.

import { ModelError, type ToolSpec } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import { wireToolName } from '../requests/write.ts'

const place = /(?:\btools|function_?declarations)(?:\[|\.)(\d+)/i
const named = /(?:function|tool)\s*:?\s*['"`]([\w-]+)['"`]/i

/**
 * The same answer, with the tool's name in an error about a tool and the advice to change its schema. `tools`: in the
 * order of the request.
 */
export async function namingTools<Reply>(answer: Promise<Reply>, tools: readonly ToolSpec[]): Promise<Reply> {
  try {
    return await answer
  } catch (error) {
    if (!(error instanceof ModelError) || error.code !== 'invalid_request' || tools.length === 0) throw error
    const words = String(error.details?.said ?? error.details?.body ?? '')
    const index = place.exec(words)?.[1]
    const word = named.exec(words)?.[1]
    const tool = index === undefined ? tools.find(({ name }) => wireToolName(name) === word) : tools[Number(index)]
    if (tool === undefined) throw error
    const { name } = tool
    const { status, details } = error
    const message = `The provider refused the tool ${name}. Change its name, description or input schema. ${error.message}`
    throw new ModelError(error.code, message, {
      ...defined({ status }),
      details: { ...details, at: 'tool', tool: name },
      cause: error,
    })
  }
}
