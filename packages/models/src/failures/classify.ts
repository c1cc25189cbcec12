// What went wrong, by everything in the provider's answer: status, codes and words. A status alone often names the
// wrong cause: 403 also means an overdue account, a blocked region or a proxy's page.
import type { ModelErrorCode } from '@oxbow/core'
import { isOverflow } from './overflow.ts'
import { retryDelay } from './retry-after.ts'

/** The part to fix, where it is not the request itself. Another model may work without it. */
export type At =
  | 'key'
  | 'account'
  | 'model'
  | 'address'
  | 'region'
  | 'content'
  | 'proxy'
  /** The model wrote a call that its provider could not read. */
  | 'output'

export interface FailureVerdict {
  readonly code: ModelErrorCode
  readonly retryable: boolean
  readonly at?: At
}

export interface SaidByProvider {
  /** Undefined for an error inside a stream. */
  readonly status: number | undefined
  /** Codes and message of the error. */
  readonly text: string
  readonly body: string
}

const lasting = (code: ModelErrorCode, at?: At): FailureVerdict => ({ code, retryable: false, ...(at && { at }) })
const passing = (code: ModelErrorCode, at?: At): FailureVerdict => ({ code, retryable: true, ...(at && { at }) })

const brokenCall = /tool_use_failed|failed.to.call.a.function|malformed.?function.?call|"failed_generation"/i
const blockedContent =
  /content.?(policy|filter|moderation)|data.?inspection|moderation|\bflagged\b|inappropriate.content|sensitive.?(content|words|information)|safety.?(system|filter|policy)|responsible.?ai/i
const blockedRegion =
  /unsupported_country|(country|region|territory|location).{0,30}(not (supported|available|allowed)|unsupported|blocked)|not (supported|available) in your (country|region|location)/i
const emptyAccount =
  /insufficient.{0,12}(quota|balance|credit|fund)|credit balance|(out of|not enough|no) (credits?|funds|balance)\b|billing|arrear|overdue|payment.required|account.{0,40}(suspended|deactivated|disabled|frozen|not active)|余额|欠费/i
const unknownModel =
  /model.{0,60}(not.?found|not.?exist|is not (available|supported)|identifier is invalid)|(unknown|no such|invalid|unsupported|not a valid) model\b|model_not_found|InvalidEndpointOrModel/i
const closedModel =
  /(not|n't) (have )?(access|permission|allowed).{0,40}\bmodel|model.{0,60}(not have access|access denied|not allowed)/i
const wrongKey =
  /API_KEY_INVALID|invalid_api_key|(invalid|incorrect|wrong|missing|expired|unauthorized).{0,12}(api.?key|access.?key|(access|auth|bearer).?token|credential)|api.?key.{0,24}(invalid|incorrect|not valid|expired|missing|not found)|authentication|UnrecognizedClient|security token/i
const page = /^\s*<(!doctype|html|head|body)/i
const busy = /overloaded|server_is_busy|insufficient_system_resource/i
const tooFast = /rate.?limit|too many requests/i

/** The request is fine but the moment is not. 424: the model behind Bedrock failed. */
const passingStatus = new Set([408, 409, 424, 425])

/**
 * @example
 * classify({ status: 429, text: 'rate_limit_exceeded', body: '' }) // { code: 'rate_limited', retryable: true }
 */
export function classify(said: SaidByProvider): FailureVerdict {
  const { status, text, body } = said
  if (brokenCall.test(text) || (status === 400 && brokenCall.test(body))) return passing('provider_error', 'output')
  if (status === 401) return lasting('auth', 'key')
  const refused = status === undefined || status === 400 || status === 403 || status === 422 || status === 451
  if (refused) {
    const cause = causeOf(said)
    if (cause !== undefined) return cause
  }
  if (status === 403) return lasting('auth', 'key')
  if (status === 407) return lasting('provider_error', 'proxy')
  if (status === 402) return lasting('invalid_request', 'account')
  // Waiting does not refill an account. Google mentions billing even where it says how long to wait.
  if (status === 429) return isSpent(said) ? lasting('rate_limited', 'account') : passing('rate_limited')
  if (isOverflow(status, text, body)) return lasting('context_overflow')
  if (status === undefined && tooFast.test(text)) return passing('rate_limited')
  if (status === 503 || status === 529 || busy.test(text)) return passing('overloaded')
  if (status === 404) return lasting('invalid_request', 'model')
  // 421 and 499 come from proxies on the way, and the same request would take the same way.
  if (status === 421 || status === 499) return lasting('provider_error')
  if (status !== undefined && status >= 400 && status < 500 && !passingStatus.has(status)) {
    return lasting('invalid_request')
  }
  return status === undefined && /invalid_request/i.test(text) ? lasting('invalid_request') : passing('provider_error')
}

const isSpent = ({ text, body }: SaidByProvider): boolean => emptyAccount.test(text) && retryDelay(body) === undefined

/**
 * Errors with status 400 or 403, or inside a stream, that are not about the request or the key.
 */
function causeOf(said: SaidByProvider): FailureVerdict | undefined {
  const { status, text, body } = said
  if (status !== undefined && page.test(body)) return lasting('provider_error', 'proxy')
  if (isSpent(said)) return lasting('rate_limited', 'account')
  if (blockedRegion.test(text)) return lasting('auth', 'region')
  if (isOverflow(status, text, body)) return undefined
  if (closedModel.test(text)) return lasting(status === 403 ? 'auth' : 'invalid_request', 'model')
  if (unknownModel.test(text)) return lasting('invalid_request', 'model')
  if (wrongKey.test(text) || body.includes('API_KEY_INVALID')) return lasting('auth', 'key')
  if (status === undefined && /permission_error/i.test(text)) return lasting('auth', 'key')
  if (blockedContent.test(text)) return lasting('invalid_request', 'content')
  return undefined
}
