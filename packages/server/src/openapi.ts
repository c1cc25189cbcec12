// The OpenAPI 3.1 document, generated from the schemas that validate requests. Built on the first request.
import { defined } from '@oxbow/core/internal'
import { z } from 'zod'
import { type Route, route } from './http/route.ts'
import { errorAnswer } from './http/schemas.ts'

type SecuritySchemes = Readonly<Record<string, object>>

/** `routes` may grow until the first request for the document. */
export function openApiRoute(routes: readonly Route[], schemes: SecuritySchemes = {}): Route {
  let document: object | undefined
  return route({
    method: 'get',
    path: '/openapi.json',
    id: 'openApi',
    access: 'open',
    summary: 'This document.',
    answers: { 200: { description: 'OpenAPI 3.1.', schema: z.looseObject({ openapi: z.string() }) } },
    handle(_request, c) {
      document ??= openApi(routes, schemes)
      return c.json(document)
    },
  })
}

const jsonSchema = (schema: z.ZodType, io: 'input' | 'output'): object => {
  const { $schema: _, ...json } = z.toJSONSchema(schema, { target: 'draft-2020-12', io })
  return json
}

export function openApi(routes: readonly Route[], schemes: SecuritySchemes): object {
  const secured = Object.keys(schemes).length > 0
  const paths: Record<string, Record<string, object>> = {}
  for (const it of routes) {
    paths[it.path] ??= {}
    paths[it.path]![it.method] = operation(it, secured)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Oxbow',
      version: '0.1.0',
      description: 'An agent harness. Errors have the form {"error": {"code", "message", "reference"?}}.',
    },
    paths,
    components: {
      schemas: { Error: jsonSchema(errorAnswer, 'output') },
      ...(secured && { securitySchemes: schemes }),
    },
    // Any one of them is sufficient.
    ...(secured && { security: Object.keys(schemes).map((name) => ({ [name]: [] })) }),
  }
}

const refusals = {
  401: 'The credentials are missing or invalid.',
  403: 'The caller may not do this, or the request names another user.',
  429: 'Too many requests, turns or invalid credentials.',
  503: 'The caller cannot be authenticated at the moment, or the service is not ready.',
}

function operation(
  { id, summary, access = 'user', params, query, headers, body, bodyOptional, answers }: Route,
  secured: boolean,
): object {
  const open = access === 'open' || access === 'optional'
  const parameters = [
    ...parametersIn('path', params),
    ...parametersIn('query', query),
    ...parametersIn('header', headers),
  ]
  const error = {
    description: 'Any other failure.',
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
  }
  return {
    operationId: id,
    summary,
    ...(secured && open && { security: [] }),
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && {
      requestBody: {
        required: bodyOptional !== true,
        content: { 'application/json': { schema: jsonSchema(body, 'input') } },
      },
    }),
    responses: {
      ...(secured &&
        !open &&
        Object.fromEntries(
          Object.entries(refusals).map(([status, description]) => [status, { ...error, description }]),
        )),
      ...Object.fromEntries(
        Object.entries(answers).map(([status, { description, schema, contentType = 'application/json' }]) => [
          status,
          {
            description,
            content: { [contentType]: { schema: schema === undefined ? { type: 'string' } : responseSchema(schema) } },
          },
        ]),
      ),
      default: error,
    },
  }
}

const responseSchema = (schema: z.ZodType): object =>
  schema === errorAnswer ? { $ref: '#/components/schemas/Error' } : jsonSchema(schema, 'output')

function parametersIn(place: 'path' | 'query' | 'header', schema: z.ZodObject | undefined): object[] {
  if (schema === undefined) return []
  const { properties = {}, required = [] } = jsonSchema(schema, 'input') as {
    properties?: Record<string, { description?: string }>
    required?: string[]
  }
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: place,
    required: place === 'path' || required.includes(name),
    ...defined({ description }),
    schema: rest,
  }))
}
