// The kinds of settings: each with its check and a sentence that states the allowed values.
import { z } from 'zod'
import { parseDuration } from './duration.ts'

export type SettingKind = 'text' | 'secret' | 'number' | 'duration' | 'choice' | 'boolean' | 'list' | 'tables'

export interface About extends Record<string, unknown> {
  readonly kind: SettingKind
  readonly description: string
  readonly allowed: string
}

export const textSetting = (description: string, allowed = 'a string that is not blank') =>
  z
    .string()
    .regex(/\S/)
    .meta({ kind: 'text', description, allowed } satisfies About)

export const integer = (min: number, max: number, description: string) =>
  z
    .number()
    .int()
    .min(min)
    .max(max)
    .meta({ kind: 'number', description, allowed: `a whole number from ${min} to ${max}` } satisfies About)

export const duration = (min: string, max: string, description: string) => {
  const [least, most] = [parseDuration(min)!, parseDuration(max)!]
  return z
    .string()
    .transform((value) => parseDuration(value) ?? -1)
    .refine((ms) => ms >= least && ms <= most)
    .meta({
      kind: 'duration',
      description,
      allowed: `a duration from "${min}" to "${max}", for example "30s" or "1m30s"`,
    } satisfies About)
}

export const choice = <const T extends readonly [string, ...string[]]>(values: T, description: string) =>
  z.enum(values).meta({
    kind: 'choice',
    description,
    allowed: values.map((it) => JSON.stringify(it)).join(' or '),
  } satisfies About)

/** A string that no message shows. */
export const secret = (description: string, allowed: string, isValid = (it: string) => /\S/.test(it)) =>
  z
    .string()
    .refine(isValid)
    .meta({ kind: 'secret', description, allowed } satisfies About)

export const boolean = (description: string) =>
  z.boolean().meta({ kind: 'boolean', description, allowed: 'true or false' } satisfies About)

/** In an environment variable: separated by commas. */
export const list = (item: RegExp, description: string, allowed: string) =>
  z.array(z.string().regex(item)).meta({ kind: 'list', description, allowed: `a list of ${allowed}` } satisfies About)

const isHttp = (value: string): boolean => URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)

export const url = (description: string) =>
  z
    .string()
    .refine(isHttp)
    .meta({ kind: 'text', description, allowed: 'an address that begins with http:// or https://' } satisfies About)

/** Dotted paths into a JSON document. A name that itself contains dots is found as well. */
export const path = (description: string) => textSetting(description, 'a path such as "user.name"')

/** A table in the file, or JSON in an environment variable. */
export const table = (description: string, allowed: string) =>
  ({ kind: 'tables', description, allowed }) satisfies About
