/* The route guide of gRPC in C++, a method of each kind: route_guide [PORT]. */
#include "route_guide.acorn.hpp"

#include <aco/io.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>
#include <vector>

using namespace routeguide;
using place = std::pair<int, int>;

static place place_of(const Point &point)
{
    return {point.latitude(), point.longitude()};
}

static const std::map<place, const char *> names = {
    {{407838351, -746143763}, "Patriots Path, Mendham, NJ 07945, USA"},
    {{408122808, -743999179}, "101 New Jersey 10, Whippany, NJ 07981, USA"},
    {{409146138, -746188906}, "Berkshire Valley Management Area Trail, Jefferson, NJ, USA"},
    {{413628156, -749015468}, "U.S. 6, Shohola, PA 18458, USA"},
};

static Feature feature_of(const place &at, const char *name)
{
    Feature feature;
    feature.set_name(name);
    feature.mutable_location()->set_latitude(at.first);
    feature.mutable_location()->set_longitude(at.second);
    return feature;
}

/* Metres between two places. */
static double distance(const Point &from, const Point &to)
{
    const double unit = 3.14159265358979 / 180 / 1e7, radius = 6371000;
    const double y = from.latitude() * unit, to_y = to.latitude() * unit;
    const double x = to.longitude() * unit - from.longitude() * unit;
    const double a =
        std::pow(std::sin((to_y - y) / 2), 2) + std::cos(y) * std::cos(to_y) * std::pow(std::sin(x / 2), 2);
    return 2 * radius * std::atan2(std::sqrt(a), std::sqrt(1 - a));
}

class route_guide final : public RouteGuide
{
  public:
    Feature GetFeature(aco::grpc_call &, const Point &point) override
    {
        const auto found = names.find(place_of(point));
        return feature_of(place_of(point), found == names.end() ? "" : found->second);
    }
    void ListFeatures(aco::grpc_call &, const Rectangle &within, aco::grpc_writer<Feature> &features) override
    {
        const auto y = std::minmax({within.lo().latitude(), within.hi().latitude()});
        const auto x = std::minmax({within.lo().longitude(), within.hi().longitude()});
        for (const auto &[at, name] : names)
            if (at.first >= y.first && at.first <= y.second && at.second >= x.first && at.second <= x.second)
                features.write(feature_of(at, name));
    }
    RouteSummary RecordRoute(aco::grpc_call &, aco::grpc_reader<Point> &points) override
    {
        const std::int64_t begin = aco_now();
        RouteSummary summary;
        Point last;
        double metres = 0;
        for (const Point &point : points) {
            metres += summary.point_count() ? distance(last, point) : 0;
            summary.set_point_count(summary.point_count() + 1);
            summary.set_feature_count(summary.feature_count() + static_cast<int>(names.count(place_of(point))));
            last = point;
        }
        summary.set_distance(static_cast<int>(std::min(metres, 2e9)));
        summary.set_elapsed_time(static_cast<int>((aco_now() - begin) / ACO_SECOND));
        return summary;
    }
    void RouteChat(aco::grpc_call &, aco::grpc_reader<RouteNote> &notes, aco::grpc_writer<RouteNote> &replies) override
    {
        for (const RouteNote &note : notes) {
            std::vector<RouteNote> &here = notes_[place_of(note.location())];
            const std::size_t count = here.size();
            here.push_back(note);
            for (std::size_t i = 0; i < count; i++) {
                const RouteNote earlier = here[i]; /* other calls add notes while this one waits */
                replies.write(earlier);
            }
        }
    }

  private:
    std::map<place, std::vector<RouteNote>> notes_;
};

int main(int argc, char **argv)
{
    const char *port = argc > 1 ? argv[1] : "50051";
    auto served = aco::spawn([port] {
        route_guide service;
        aco::grpc_server server;
        service.add_to(server);
        aco::listener door("tcp", "127.0.0.1", port);
        std::printf("listening on %s\n", door.local_address().c_str());
        std::fflush(stdout);
        server.serve(std::move(door));
    });
    return aco_run();
}
