// Asks with Java's HttpClient and its defaults, which offer an upgrade to HTTP/2: java Ask.java URL KEY [PATH BODY]...
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

public class Ask {
    public static void main(String[] arguments) throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        for (int n = 2; n < arguments.length; n += 2) {
            HttpRequest request = HttpRequest.newBuilder(URI.create(arguments[0] + arguments[n]))
                .header("Content-Type", "application/json")
                .header("Authorization", "Bearer " + arguments[1])
                .POST(HttpRequest.BodyPublishers.ofString(arguments[n + 1]))
                .build();
            HttpResponse<String> reply = client.send(request, HttpResponse.BodyHandlers.ofString());
            System.out.println(reply.statusCode() + " " + reply.body().replace("\n", " "));
        }
    }
}
