// The meaning of providers' finish reasons. An unknown word never means that the answer is whole.
import type { FinishReason } from '@oxbow/core'

/** `broken`: the answer failed, and another request may do better. */
export type End = 'whole' | 'length' | 'filtered' | 'refusal' | 'broken' | 'unknown'

const words: Readonly<Record<Exclude<End, 'unknown'>, string>> = {
  whole:
    'stop end_turn stop_sequence eos eos_token end complete completed done finished ' +
    'tool_calls tool_call tool_use tool-calls function_call function_calls calls',
  length:
    'length max_tokens max_output_tokens max_length model_length model_context_window_exceeded context_length_exceeded ' +
    'pause_turn token_limit',
  filtered:
    'content_filter content-filter content_filtered sensitive safety recitation blocklist prohibited_content spii ' +
    'image_safety language guardrail_intervened',
  refusal: 'refusal refused',
  // OpenRouter and Mistral, Zhipu, DeepSeek, vLLM, Gemini.
  broken:
    'error network_error insufficient_system_resource abort aborted cancelled failed timeout other malformed_response ' +
    'malformed_function_call malformed_model_output malformed_tool_use unexpected_tool_call',
}
const ends = new Map<string, End>(
  Object.entries(words).flatMap(([end, list]) => list.split(' ').map((word) => [word, end as End])),
)

/** @example endOf('MAX_TOKENS') // 'length' */
export const endReasonOf = (word: string): End => ends.get(word.toLowerCase()) ?? 'unknown'

export interface Ended {
  readonly finishReason: FinishReason
  /** The provider's word, where it is unknown. */
  readonly endedWith?: string
}

/**
 * @param word undefined where the answer is known to be whole without one
 * Calls decide between `stop` and `calls`: many providers send `stop` after calls. An answer with an unknown reason may
 * have been cut, so it is reported as cut and its calls do not run.
 */
export function endedBy(word: string | undefined, called: boolean, refused = false): Ended {
  const end = word === undefined ? 'whole' : endReasonOf(word)
  if (end === 'whole') return { finishReason: called ? 'calls' : refused ? 'refusal' : 'stop' }
  if (end === 'unknown') return { finishReason: 'length', endedWith: (word ?? '').slice(0, 64) }
  return { finishReason: end === 'broken' ? 'error' : end }
}
