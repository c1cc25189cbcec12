// The endpoint of requests and their fixed parts: validated once, when a model is made.
import { validateHeaderName, validateHeaderValue } from 'node:http'
import { type ModelRequest, OxbowError } from '@oxbow/core'
import { anything, callable, type Fields, object, text } from '@oxbow/core/internal'
import { checkModelOptions, headerFields, key, limitFields, timeoutFields } from '../check-options.ts'
import { scrubber } from '../failures/secrets.ts'
import { checkLimits, defaultLimits, type Limits } from './answer.ts'
import { checkTimeouts, type Timeouts } from './clock.ts'
import type { Endpoint } from './exchange.ts'
import { sendWithFetch } from './transport.ts'

/** Options of every built-in driver. */
export interface DriverOptions {
  /** Default `provider:model`. */
  readonly id?: string
  readonly provider: string
  readonly model: string
  /** Without the format's path, for example `https://api.openai.com/v1`. */
  readonly baseUrl: string
  readonly apiKey?: string | undefined
  /** The header that carries the key alone, where the format's own is not used: `api-key` for Azure. */
  readonly keyHeader?: string | undefined
  /** The environment variable that holds the key; error messages name it. */
  readonly keyVariable?: string | undefined
  /**
   * Fields of each request beside the driver's own, for example `{ thinking: … }`; those of the request win.
   */
  readonly options?: Readonly<Record<string, unknown>>
  /** Sent with each request; they override the driver's own. */
  readonly headers?: Readonly<Record<string, string>>
  readonly timeouts?: Timeouts
  readonly limits?: Limits
  /** Sends the requests instead of node:http, for example through a custom client. */
  readonly fetch?: typeof globalThis.fetch
}

export interface Format {
  /** The function whose options these are, for error messages. */
  readonly of: string
  /** For error messages. */
  readonly name: string
  readonly path: string
  /** The format's headers, with the key where the format expects it. */
  headers(apiKey: string | undefined): Readonly<Record<string, string>>
}

/** The request plus the fields that every request of the model carries. */
export const withOptions = (request: ModelRequest, options: DriverOptions['options']): ModelRequest =>
  options === undefined ? request : { ...request, options: { ...options, ...request.options } }

export const bearer = (apiKey: string | undefined): Record<string, string> =>
  apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }

/** @throws OxbowError `model_config` when the address is invalid or holds a password. */
export function checkAddress(provider: string, baseUrl: string): void {
  if (!URL.canParse(baseUrl) || !/^https?:$/.test(new URL(baseUrl).protocol)) {
    throw new OxbowError('model_config', `The base URL of ${provider} is not a URL. It must look like https://host/v1`)
  }
  const { username, password } = new URL(baseUrl)
  if (username !== '' || password !== '') {
    throw new OxbowError('model_config', `The base URL of ${provider} holds a password. Send it as a header instead.`)
  }
}

const FIELDS: Fields<DriverOptions> = {
  id: text,
  provider: text,
  model: text,
  baseUrl: anything,
  apiKey: key,
  keyHeader: text,
  keyVariable: text,
  options: object,
  headers: headerFields,
  timeouts: timeoutFields,
  limits: limitFields,
  fetch: callable,
}

/**
 * @param fields the options that the driver has beside those of every driver
 * @throws OxbowError `model_config` for an unknown option, or when the address, the key or a header is invalid.
 */
export function endpointOf<T extends DriverOptions>(
  options: T,
  format: Format,
  fields: Fields<Omit<T, keyof DriverOptions>>,
): Endpoint {
  checkModelOptions<DriverOptions>(format.of, options, { ...FIELDS, ...fields }, ['provider', 'model', 'baseUrl'])
  const { provider, model, baseUrl, apiKey, keyHeader, keyVariable, timeouts = {} } = options
  checkAddress(provider, baseUrl)
  checkTimeouts(provider, timeouts)
  checkLimits(provider, options.limits ?? {})
  if (apiKey !== undefined && !/^[\x21-\x7e]+$/.test(apiKey)) {
    const name = keyVariable ?? `The API key of ${provider}`
    throw new OxbowError('model_config', `${name} is empty or contains invalid characters.`)
  }
  const own = Object.entries(options.headers ?? {})
  for (const [header, value] of own) {
    if (isHeader(header, value)) continue
    throw new OxbowError('model_config', `The header ${JSON.stringify(header)} for ${provider} is not valid.`)
  }
  const { path, name } = format
  return {
    context: {
      provider,
      model,
      baseUrl,
      path,
      format: name,
      scrub: scrubber({ keys: [apiKey], headers: options.headers, baseUrl }),
      keyVariable,
    },
    url: withPath(baseUrl, path),
    headers: lowerCased({
      'content-type': 'application/json',
      accept: 'text/event-stream',
      ...format.headers(keyHeader === undefined ? apiKey : undefined),
      ...(keyHeader === undefined || apiKey === undefined ? {} : { [keyHeader]: apiKey }),
      ...options.headers,
    }),
    timeouts,
    limits: { ...defaultLimits, ...options.limits },
    send: options.fetch && sendWithFetch(options.fetch),
  }
}

/** A query of the base URL goes after the path: Azure requires `?api-version=…`. */
function withPath(baseUrl: string, path: string): string {
  const [address = '', ...query] = baseUrl.split('?')
  return [`${address.replace(/\/+$/, '')}${path}`, ...query].join('?')
}

/** The later of two headers wins, regardless of letter case. */
const lowerCased = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value.trim()]))

function isHeader(name: string, value: string): boolean {
  try {
    validateHeaderName(name)
    validateHeaderValue(name, value)
    return true
  } catch {
    return false
  }
}
