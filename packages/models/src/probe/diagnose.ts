// Why a model does not answer, and what to do about it.
import type { ModelError } from '@oxbow/core'
import { addressOf } from '../failures/secrets.ts'

export type Fault =
  | 'key'
  | 'model_name'
  | 'address'
  | 'dns'
  | 'refused'
  | 'tls'
  | 'proxy'
  | 'network'
  | 'quota'
  | 'rate_limited'
  | 'overloaded'
  | 'stream_cut'
  | 'timeout'
  | 'request'
  | 'provider'

export interface Diagnosis {
  readonly fault: Fault
  /** What it is most likely, and what to do: whole sentences, safe to show. */
  readonly advice: string
}

export interface Circumstances {
  readonly baseUrl: string
  readonly model: string
  /** The variable that the key came from. */
  readonly keyVariable?: string | undefined
  /** Through which proxy it is asked, if any. */
  readonly proxy?: string | undefined
}

/**
 * @example
 * const { fault, advice } = diagnose(error, { baseUrl: 'https://api.deepseek.com/v1', model: 'deepseek-chat' })
 */
export function diagnose(error: ModelError, { baseUrl, model, keyVariable, proxy }: Circumstances): Diagnosis {
  const { code, status, details, retryable } = error
  const address = addressOf(baseUrl)
  switch (code) {
    case 'auth':
      return {
        fault: 'key',
        advice: `The key in ${keyVariable ?? 'its variable'} is not one of this provider, has expired, or may not use ${model}. Make a new one and set it.`,
      }
    case 'rate_limited':
      return retryable
        ? {
            fault: 'rate_limited',
            advice: 'Too many requests for this account. Wait, or set limits of the model below those.',
          }
        : { fault: 'quota', advice: 'The account has nothing left. Top it up, or use another key.' }
    case 'overloaded':
      return {
        fault: 'overloaded',
        advice: 'The provider has too much to do. Try later, or name a spare model in fallbacks.',
      }
    case 'stream_cut':
      return {
        fault: 'stream_cut',
        advice: `The connection broke within the answer. Something in between may close it early${proxy === undefined ? '' : `, such as the proxy ${proxy}`}; try again.`,
      }
    case 'first_byte_timeout':
    case 'idle_timeout':
    case 'total_timeout':
      return { fault: 'timeout', advice: 'It took too long. Try again, or raise timeouts of the model.' }
    case 'invalid_request':
    case 'context_overflow':
      return refusal(String(details?.body ?? ''), status, address, model)
    default:
      return unreachable(error, address, proxy)
  }
}

const UNKNOWN_MODEL =
  /model.{0,80}(?:not.?(?:found|exist)|does not|unknown|unsupported|invalid)|(?:unknown|invalid|no such).{0,20}model|InvalidEndpointOrModel/i

function refusal(body: string, status: number | undefined, address: string, model: string): Diagnosis {
  if (status === 402) return { fault: 'quota', advice: 'The account has nothing left. Top it up, or use another key.' }
  if (UNKNOWN_MODEL.test(body))
    return {
      fault: 'model_name',
      advice: `The provider has no ${model}, or this account may not use it. Check the name.`,
    }
  if (status === undefined || status < 400 || status === 404 || status === 405)
    return {
      fault: 'address',
      advice: `There is no such API at ${address}. The base URL ends before the path of the format, most often with /v1.`,
    }
  return { fault: 'request', advice: 'It does not take a part of the request. Check options and headers of the model.' }
}

const TLS = /^(?:CERT_|ERR_TLS_|ERR_SSL_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_)/

/** Node's codes stand in the causes, one below the other. */
function codesOf(error: unknown): string[] {
  const codes: string[] = []
  for (let it = error; it instanceof Error; it = it.cause) {
    const { code, errors } = it as { code?: unknown; errors?: unknown }
    if (typeof code === 'string') codes.push(code)
    // A name with several addresses fails once for each.
    if (Array.isArray(errors)) for (const one of errors) codes.push(...codesOf(one))
  }
  return codes
}

function unreachable(error: ModelError, address: string, proxy: string | undefined): Diagnosis {
  const codes = codesOf(error.cause)
  const has = (pattern: RegExp): boolean => codes.some((it) => pattern.test(it))
  if (typeof error.details?.body === 'string' && error.status === undefined)
    return {
      fault: 'address',
      advice: `What answers at ${address} is not this API. The base URL ends before the path of the format, most often with /v1.`,
    }
  if (error.cause === undefined) return { fault: 'provider', advice: 'The fault is at the provider. Try again later.' }
  if (has(TLS)) {
    const why = has(/EXPIRED|NOT_YET_VALID/)
      ? 'If the clock of this machine is right, the certificate is out of date.'
      : 'Where a company’s own authority has signed it, name its file in NODE_EXTRA_CA_CERTS; for a server without TLS write http://.'
    return { fault: 'tls', advice: `The certificate of ${address} was not accepted. ${why}` }
  }
  if (proxy !== undefined)
    return {
      fault: 'proxy',
      advice: `It is asked through ${proxy} (HTTPS_PROXY, HTTP_PROXY), which did not let it through. Check the proxy, or except the host with NO_PROXY.`,
    }
  if (has(/^(?:ENOTFOUND|EAI_AGAIN)$/))
    return {
      fault: 'dns',
      advice: `The host of ${address} is not known. Check its name, and the network of this machine.`,
    }
  if (has(/^ECONNREFUSED$/))
    return { fault: 'refused', advice: `Nothing listens at ${address}. Check that the server runs, and the port.` }
  return {
    fault: 'network',
    advice: `No connection to ${address} came about. Check the network; where the way out is a proxy, set HTTPS_PROXY.`,
  }
}
