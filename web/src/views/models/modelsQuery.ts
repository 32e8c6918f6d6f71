/** ModelsQuery: the models that the server can use. It asks local servers, so it is fetched only where it is shown. */
import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "@/api/client";

export const modelsQuery = queryOptions({
  queryKey: ["models"],
  queryFn: () => unwrap(api.GET("/api/models")),
});
