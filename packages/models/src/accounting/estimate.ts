import { type Block, estimateTokens, type ModelRequest, type ToolSpec, type Usage } from '@oxbow/core'
import { estimateMessageTokens } from '@oxbow/core/internal'

/** Tokens of a request: its text plus a little for the framing of each message. Messages are counted once. */
export function estimateRequestTokens(request: ModelRequest): number {
  let tokens = estimateTokens(request.system)
  for (const tool of request.tools) tokens += toolTokens(tool)
  for (const message of request.messages) tokens += estimateMessageTokens(message)
  return tokens
}

const counts = new WeakMap<ToolSpec, number>()

function toolTokens(tool: ToolSpec): number {
  let tokens = counts.get(tool)
  if (tokens === undefined) {
    tokens = estimateTokens(tool.name + tool.description + JSON.stringify(tool.input))
    counts.set(tool, tokens)
  }
  return tokens
}

/** The usage of a call whose provider reported none. */
export function estimateUsage(request: ModelRequest, blocks: readonly Block[]): Usage {
  let output = 0
  let reasoning = 0
  for (const block of blocks) {
    if (block.type === 'text') output += estimateTokens(block.text)
    else if (block.type === 'call') output += estimateTokens(block.tool + block.arguments)
    else if (block.type === 'thinking') reasoning += estimateTokens(block.text)
  }
  return {
    inputTokens: estimateRequestTokens(request),
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: output + reasoning,
    reasoningTokens: reasoning,
    estimated: true,
  }
}
